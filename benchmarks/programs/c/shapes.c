#include <math.h>
#include <stdio.h>

enum kind { CIRCLE, SQUARE, TRIANGLE };

typedef struct shape {
    enum kind kind;
    double size;
} shape;

double area(const shape *s) {
    switch (s->kind) {
    case CIRCLE:
        return 3.14159 * s->size * s->size;
    case SQUARE:
        return pow(s->size, 2.0);
    default:
        break;
    }
    return sqrt(3.0) / 4 * s->size * s->size;
}

int main(void) {
    shape shapes[3] = {{CIRCLE, 1.0}, {SQUARE, 2.5}, {TRIANGLE, 4.0}};
    double total = 0;
    for (unsigned int i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        total += area(&shapes[i]);
    }
    printf("total %.2f, mean %.2f\n", total, total / 3);
    return total > 10 ? 0 : 1;
}
