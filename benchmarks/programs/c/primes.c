#include <stdio.h>
#include <stdlib.h>

unsigned long power(unsigned long base, unsigned int exponent, unsigned long modulus) {
    unsigned long result = 1;
    base %= modulus;
    while (exponent > 0) {
        if (exponent & 1)
            result = result * base % modulus;
        base = base * base % modulus;
        exponent >>= 1;
    }
    return result;
}

int main(void) {
    int limit = 100;
    char *composite = malloc(limit + 1);
    if (!composite)
        return 1;
    for (int i = 0; i <= limit; i++)
        composite[i] = 0;
    for (int i = 2; i * i <= limit; i++) {
        if (composite[i])
            continue;
        for (int j = i * i; j <= limit; j += i)
            composite[j] = 1;
    }
    int last = 0;
    do {
        last = limit--;
    } while (composite[last] && limit > 2);
    printf("%d %lu\n", last, power(3, last - 1, last));
    free(composite);
    return 0;
}
