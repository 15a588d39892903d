#include <ctype.h>
#include <stdio.h>
#include <string.h>

struct count {
    char word[32];
    int times;
};

static int find(struct count *table, int used, const char *word) {
    for (int i = 0; i < used; i++) {
        if (strcmp(table[i].word, word) == 0)
            return i;
    }
    return -1;
}

int main(void) {
    struct count table[16];
    const char *words[4] = {"one", "two", "one", "three"};
    int used = 0;
    for (int i = 0; i < 4; i++) {
        int at = find(table, used, words[i]);
        if (at < 0) {
            strcpy(table[used].word, words[i]);
            table[used].times = 1;
            used++;
        } else {
            table[at].times += 1;
        }
    }
    // The first letter as a capital.
    for (int i = 0; i < used; i++) {
        printf("%c%s: %d\n", toupper(table[i].word[0]), table[i].word + 1, table[i].times);
    }
    return 0;
}
