struct cell {
    int value;
    struct cell *next;
};

int length(struct cell *first) {
    int count = 0;
    while (first) {
        count += 1;
        first = first->next;
    }
    return count;
}

int main(void) {
    struct cell last = {3, 0};
    struct cell first = {7, &last};
    char *text = "two cells";
    return length(&first) == 2 && text[0] == 't' ? 0 : 1;
}
