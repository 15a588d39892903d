#include <stdio.h>

/* Sorts in place by exchanging neighbours. */
static void sort(int *items, int count) {
    for (int i = 0; i < count; i++) {
        for (int j = 0; j + 1 < count - i; j++) {
            if (items[j] > items[j + 1]) {
                int kept = items[j];
                items[j] = items[j + 1];
                items[j + 1] = kept;
            }
        }
    }
}

int main(void) {
    int numbers[5] = {4, 2, 5, 1, 3};
    sort(numbers, 5);
    for (int i = 0; i < 5; i++) {
        printf("%d\n", numbers[i]);
    }
    return 0;
}
