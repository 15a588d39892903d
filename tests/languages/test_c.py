"""C against hand-written programs, and against `cc` where it is installed."""

from __future__ import annotations

import shutil
import subprocess
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aufbau import Grammar, Oracle, Prefix, Verdict

COMPILER = shutil.which("cc")
FLAGS = [
    "-std=c17",
    "-fsyntax-only",
    "-pedantic-errors",
    *(f"-Werror={kind}" for kind in ("int-conversion", "incompatible-pointer-types", "implicit-function-declaration")),
    *(f"-Werror={kind}" for kind in ("implicit-int", "return-type")),
    "-x",
    "c",
    "-",
]

# Programs that cc accepts.
ACCEPTED = [
    "int main(void) { return 0; }",
    "int main() { int x; int y = 2, *p = &y; x = *p + y; return x; }",
    "int main(int argc, char *argv[]) { return argc > 1 && argv[1] != 0; }",
    "int main(int n, char **v) { if (n > 3) return main(n - 1, v); return 0; }",
    # functions
    "int max(int a, int b) { if (a > b) return a; else return b; }",
    "int fact(int n) { return n <= 1 ? 1 : n * fact(n - 1); }",
    "int even(int); int odd(int n) { return n == 0 ? 0 : even(n - 1); }\n"
    "int even(int n) { return n == 0 || odd(n - 1); }",
    "int count(int n) { int count = 0; while (n) { n /= 10; count++; } return count; }",
    "int f(const int); int f(int a) { return a; } int g(void); int g() { return f(2); }\n"
    "int h(); int h(int x) { return x; }",
    "void swap(int *a, int *b) { int t = *a; *a = *b; *b = t; }\n"
    "int f(void) { int x = 1, y = 2; swap(&x, &y); return x; }",
    "int apply(int (*f)(int), int x) { return f(x) + (*f)(x); } int twice(int x) { return 2 * x; }\n"
    "int f(void) { int (*g)(int) = twice; return apply(g, 2) + apply(&twice, 3); }",
    "void g(void) { } int f(void) { return g(), 1; }",
    # statements
    "int f(void) { int i = 0; do { if (i == 3) continue; i++; if (i > 9) break; } while (1); return i; }",
    "int f(int a) { if (a) if (a > 1) return 1; else return 2; return 3; }",
    "int f(int x) { while (x > 0) if (x % 2) x--; else x /= 2; return x; }",
    "void f(void) { return; } void g(int n) { for (;;) { if (n--) f(); else return; } }",
    "void f(int n, int a[n]) { for (int i = 0, j = 1; i < n; i++, j++) a[i] = j; }",
    "int f(int x) { switch (x) { case 1: case 1 + 1: x = 3; default: break; } return x; }",
    "int f(int x) { int r = x ? x : 0; goto done; done: return r; }",
    # scopes
    "int f(int x) { { int x = 2; x = 3; } return x; }",
    "int f(int x) { for (int x = 0; x < 3; x++) { int x = 1; x++; } return x; }",
    "int x; int x; extern int x; int x = 3; int *p = &x; int f(void); int f(void) { return *p; }",
    # scalars and conversions
    "double mean(double *a, int n) { double s = 0; int i; for (i = 0; i < n; i++) s += a[i]; return s / n; }",
    "float half(int n) { return n / 2.0; } int g(float x) { return half((int) x); }",
    "unsigned long int f(long unsigned a, short b, signed char c) { return a + b * c; }",
    "int f(char c) { return c >= '0' && c <= '9' ? c - '0' : -1; }",
    "_Bool f(int *p) { _Bool b = p; return b && !p; }",
    "int f(long a, char c) { static int k = 0; k = k + 1; return (char) a + (int) 2.5f + c + 0x1F + 017 + 10UL + k; }",
    "int f(int n) { int x = 1; x <<= 2; x |= n & 3 ^ ~n; x %= 7; return x >> 1, -x; }",
    "int f(int x) { return x == 1 == 2 < 3; } unsigned g(void) { int x; return x = -1; }",
    # pointers and arrays
    "char *end(char *s) { while (*s) s++; return s; } int *g(int *p) { return 1 ? p : 0; }",
    "int f(int i, int *p) { return *(i ? p : 0) + *(i ? 0 : p); } int g(int i) { return i ? 0 : 1.5; }",
    "int f(void *v, int *p) { v = p; p = v; return v == p && p != 0; }",
    "const int limit = 3; int f(const int *p) { return *p < limit; } int g(int *p) { return f(p); }",
    "int a[3]; int f(void) { return *(a + 1) + *a + (&a[1])[0] + (&a[2] - a); }",
    "int f(void) { int i, *p[3], **q = p; p[0] = &i; *q = p[0]; **q = 3; return i; }",
    "int f(int a[], int n) { int b[3] = {1, 2, 3}, c[] = {4, 5,};\n"
    "  return a[n] + b[0] + sizeof c / sizeof c[0] + sizeof(int); }",
    "int m[2][3] = {{1, 2, 3}, {4, 5, 6}}; int f(int a[][3], int (*b)[3]) { return a[1][2] + b[0][1] + m[1][1]; }\n"
    "int g(void) { return f(m, m); }",
    "char a[10] = \"ab\\n\\0\\x41\"; const char *s = \"it's\" \" \\\"fine\\\"\"; char c = '\\''; char d = '\\\\';",
    # types with names
    "typedef struct node { int value; struct node *next; } node;\n"
    "int sum(node *l) { int s = 0; while (l != 0) { s += l->value; l = l->next; } return s; }",
    "struct point { double x, y; };\n"
    "struct point add(struct point a, struct point b) { struct point c = {a.x + b.x, a.y + b.y};\n"
    "  a = b; return c; }",
    "struct a { int n; }; struct b { double n; struct a in[2]; };\n"
    "int f(struct b *p) { return p->in[1].n + (int) p->n % 2; }",
    "struct s { const char *const name; const int n; int m; }; int f(struct s *p) { p->m = p->n; return *p->name; }",
    "union u { int i; float f; }; float g(union u u) { u.i = 1; return u.f; }",
    "enum color { RED, GREEN = 3, BLUE }; int f(enum color c) { switch (c) { case RED: return 1; case GREEN: break;\n"
    "  default: return 2; } return BLUE; }",
    "typedef int number; number f(number n) { number *p = &n; { int number = 2; n = number * n; } return *p; }",
    "typedef int (*op)(int, int); int add(int a, int b) { return a + b; } int f(op o) { return o(1, 2); }\n"
    "int g(void) { return f(add); }",
    "struct s { int n; }; struct s a, b; int f(int i) { return (i ? a : b).n + (a = b).n; } int x; void g(void) {\n"
    "  extern int x; extern int x; x = 1; }",
    # the preprocessor and the library
    '#include <stdio.h>\nint main(void) { int n; scanf("%d", &n); printf("%d\\n", n * 2); return 0; }',
    "#include <stdlib.h>\n#include <string.h>\nchar *copy(const char *s) { char *t = malloc(strlen(s) + 1);\n"
    "  if (t == NULL) return NULL; return strcpy(t, s); }",
    "#include <stdbool.h>\n#include <math.h>\nbool f(double x) { bool b = true; return b && sqrt(x) > 2 && !false; }",
    "#define N 10\nint a[N]; int f(void) { int i; for (i = 0; i < N; ++i) a[i] = i; return a[N - 1]; }",
    "#ifndef H\n#define H\nint f(void);\n#endif\n"
    "int g(int printf) { return printf; } int abs(int x) { return x < 0 ? -x : x; }\n",
    "// one\n/* two ** / */ int /* three */ x = 1; // four",
    # lines and what declarations say
    "  # include <stdio.h> // io\n#include <math.h> /* hm */\n#  include<stdlib.h>\nint x = EOF;",
    "/* c */ #include \"stdio.h\"\nint f(void) { return puts(\"stdio.h\"); }",
    "#ifndef H\n#define H // guard\n#include <stdio.h>\nint x;\n#endif // H",
    "#define A (1 + (2 * 3))\n#define B (A) /* minus ( */\n# define C -1 // minus (\n#define D \"x(\" "
    "\"y\"\n#define E '('\nint a[B], c = C; char *s = D; int e = E;",
    "#define N \\\n  20\nint a[N];",
    "#ifdef FOO\n#pragma GCC diagnostic ignored \"-Wx\"\n#ifdef BAR\n#define B 1\n#else\n#pragma "
    "y\n#endif\n#endif\nint B;",
    "// c\n#if defined A && !defined B\nint y;\n#else\nchar y;\n#endif\nchar *f(void) { return &y; }",
    "#include <stdio.h>",
    "#pragma once\nint x;\n#pragma foo",
    "#define X\n#include <errno.h>\n#include <float.h>\nint f(void) { errno = ENOBUFS; return FLT_DIG; }",
    "int x; // a \\\nint y\nint y;",
    "typedef int t; typedef int t; t x, a[], a[2]; extern t x; static t f(void); static t f(void) { return x; }",
    "struct s; int foo(struct s blah); struct s g(void); struct s { int x; }; int foo(struct s blah) { "
    "return blah.x; }",
    "#define N 4\nenum e { A = 3, B }; int a[B + N], b[2 * N - 1], c[sizeof(int) * 2 + 1], d[(N + 1) * 2], "
    "e[1 << 4];",
    "void f(int n) { int a[n - 1], b[n / 2][3 * n + 1], c[2 * 3 + 1]; a[0] = b[0][0] = c[0] = n; }",
    "struct s { int n; char tail[]; }; typedef struct { int n, t[]; } u; char (*p)[3] = &\"ab\"; "
    "int f(void) { return (*&\"ab\")[1]; }",
    "static int f(int x) { if (x) { while (x) { if (x == 2) return x; x--; } } }\nstatic void g(void) { } "
    "static inline int h(int x) { do return g(), f(x); while (x); }",
    "int add(int a, int b) { return a + b; } int (*ops[2])(int, int) = {add, &add}; int (*t[])(int, int) = "
    "{add};\nint f(int *a) { int (*p[2])(int, int); p[0] = add; return ops[1](1, 2) + (*t[0])(1, 2) + "
    "p[0](3[a], a[1]); }",
    "void copy(char *restrict a, const char *restrict b, int *volatile c, char *const *d) { *a = *b; *c = **d; }",
    "int f(int x) { if (x) goto main; x = 2; main: for (int i = 0, *p = &i; i < *p; i++) ; return 0; }",
]  # fmt: skip

# Programs that cc refuses; ¦ stands before the byte at which they are lost. Without ¦ they are live to the end.
REFUSED = [
    "¦;",
    "int f(int n) { return n ¦}",
    "int f(int x) { return x",
    "int f(int n) { return n; ",
    "int f(void) { return 'ab; }",
    'int f(void) { char *s = "a\\¦q"; return *s; }',
    "int f(void) { return 08¦; }",
    "int f(void) { int¦; }",
    "int f(void) { int unsigned float¦ x; return 0; }",
    "int f(void) { else¦ return 1; }",
    "int f(void) { if (1) int¦ x = 2; return 0; }",
    "int f(void) { sizeof(int) ¦1; }",
    # names and scopes
    "int f(void) { x ¦= 1; return 0; }",
    "int f(void) { int x = 1; int x¦ = 2; return x; }",
    "int f(int x) { int x¦ = 1; return x; }",
    "int f(int a, int a¦) { return a; }",
    "int f(int x) { for (int i = 0; i < x; i++) x--; return i¦; }",
    "int f(void) { return g¦(1); } int g(int x) { return x; }",
    'int f(void) { printf¦("x"); return 0; }',
    "int x = 1; int x ¦= 2;",
    "int f(int n); char f¦(int n) { return n; }",
    "int f(int n) { return n; } int f(int n) ¦{ return n; }",
    "typedef int t; int f(void) { return t¦; }",
    "int f(void) { t ¦x; return 0; }",
    # functions
    "int f(int) ¦{ return 1; }",
    "void main¦(void) { }",
    "void f(void) { return 1¦; }",
    "int f(void) { return¦; }",
    "int f(int x) { return x¦(1); }",
    "int g(int x) { return x; } int f(void) { return g(1¦, 2); }",
    "int g(int x, int y) { return x + y; } int f(void) { return g(1¦); }",
    "int g(int *p) { return *p; } int f(int x) { return g(x¦); }",
    "void g(void) { } int f(void) { return g()¦; }",
    "void g(void) { } int f(void) { return g() ¦+ 1; }",
    "void g(void) { } int f(void) { if (g()¦) return 1; return 0; }",
    # control
    "int f(void) { break¦; return 0; }",
    "int f(void) { if (1) continue¦; return 0; }",
    "int f(int n) { case¦ 1: return n; }",
    "int f(int n) { switch (n) { case ¦n: return 1; } return 0; }",
    # places
    "int f(void) { 1 =¦ 2; return 0; }",
    "int f(int a, int b) { a + b =¦ 2; return 0; }",
    "int f(int a) { a++ =¦ 2; return 0; }",
    "int f(void) { return &1 ¦== 0; }",
    "int f(int a[3]) { int c[3]; c =¦ a; return 0; }",
    "int f(const int c) { c =¦ 1; return c; }",
    "void g(const char *s) { *s =¦ 'a'; }",
    "struct s { const int n; int m; }; int f(struct s *p) { p->n =¦ 1; return 0; }",
    # types
    "int f(void) { int *p = 1¦; return *p; }",
    "int f(int *p) { char *q = p¦; return *q; }",
    "int f(int *p) { return p¦; }",
    "int *f(int x) { return x¦; }",
    "void g(const char *s) { char *t = s¦; }",
    'int f(void) { char c = "a"¦; return c; }',
    "int f(double d) { return d ¦% 2; }",
    "int f(double d) { return d <¦< 1; }",
    "int f(int *p, int *q) { return p + q¦; }",
    "int f(int *p) { return p ¦* 2; }",
    "int f(int *p) { return -p¦; }",
    "int f(int x) { return *x¦; }",
    "int f(int *p) { return p == 1¦; }",
    "int f(int i, int *p) { return i ? p : 1¦; }",
    "int f(int *p, char *q) { return p == q¦; }",
    "int f(void) { float x = 1.5; int *p = (int *) x¦; return 0; }",
    "void f(void) { void x¦; }",
    "int x = 1; int y = x¦;",
    "int f(void) { int a[0¦]; return 0; }",
    # records
    "struct s { int a; }; int f(struct s x) { return x.¦b; }",
    "struct s { int a; }; int f(struct s *p) { return p¦.a; }",
    "struct s { int a; }; int f(struct s x) { return x ¦+ 1; }",
    "struct s { int a; }; int f(struct t x) ¦{ return 0; }",
    "struct s { int a; int a¦; };",
    # lines
    "#include <stdio.h> ¦int x;",
    "int x; ¦#include <stdio.h>",
    "#include¦\n<stdio.h>\nint x;",
    "# define N (1\n ¦+ 2)\nint a[N];",
    "#define N 10 +¦\n2\nint a[N];",
    "#define N 10\n¦+ 2\nint a[N];",
    "#define N\n¦10\nint a[1];",
    "#define¦\nN 10\nint a[N];",
    "#define N 1\n#define N¦ 2\nint x;",
    "#¦endif\nint x;",
    "#ifndef A\nint x;",
    "#ifdef A\n#endif ¦x\nint x;",
    "#ifdef A\n#else\n#e¦lse\n#endif\nint x;",
    "#ifdef A\nint x;\n#endif\nint f(void) { return ¦x; }",
    "#include <stdbool.h>",
    "#define N 1.5\nint a[¦N];",
    "a¦uto int x;",
    "re¦gister int x;",
    "inline int x¦;",
    "int a[0¦];",
    "int n; int a[¦n];",
    "int a[5 ¦- 9];",
    "enum e ¦x;",
    "enum e¦; int x;",
    "struct s { int a[¦]; int n; };",
    "struct { int n; }¦;",
    "union u { int x; }; struct u¦ y;",
    "int f(int n) { int a[n] ¦= {1}; return a[0]; }",
    "static int f(void) { ¦}",
    "inline int f(void) { static int ¦n; return n; }",
    "int f(int x) { a: x++; a¦: return x; }",
    "int f(void) { for (struct s¦; ; ) ; return 0; }",
    "int f(void) { for (int g¦(void); ; ) ; return 0; }",
    "int f(int x) { switch (x) { case 1: return 2; case 1¦: return 3; } return 0; }",
    "int f(int x) { switch (x) { default: x = 1; default¦: return 3; } }",
    "typedef int t; int *p = &t¦;",
    "int *p = &ab¦s;",
    "int f(void) { return ma¦in(); }",
    "int f(void) { return 0¦(1); }",
    "int f(int a) { return 3[a¦]; }",
]  # fmt: skip


@cache
def oracle() -> Oracle:
    return Oracle(Grammar.load("c"))


def feed(text: str) -> Prefix:
    return oracle().start().feed(text)


def compiles(text: str) -> bool:
    assert COMPILER is not None
    return subprocess.run([COMPILER, *FLAGS], input=text, text=True, capture_output=True).returncode == 0


@pytest.mark.parametrize("text", ACCEPTED)
def test_accepted(text: str) -> None:
    """Satisfied at the end, and lost at no byte before."""
    prefix = oracle().start()
    for byte in text.encode():
        prefix = prefix.feed(bytes((byte,)))
        assert prefix.lost_at is None, str(prefix.explain())
    assert prefix.verdict is Verdict.SATISFIED, str(prefix.explain())


@pytest.mark.parametrize("text", REFUSED)
def test_refused(text: str) -> None:
    before, mark, after = text.partition("¦")
    prefix = feed(before + after)
    if mark:
        assert prefix.lost_at == len(before.encode()), f"{prefix.verdict} at {prefix.lost_at}: {prefix.explain()}"
    else:
        assert prefix.verdict is Verdict.LIVE


@pytest.mark.skipif(COMPILER is None, reason="no C compiler is installed")
@pytest.mark.parametrize("text", ACCEPTED)
def test_the_compiler_accepts(text: str) -> None:
    assert compiles(text)


@pytest.mark.skipif(COMPILER is None, reason="no C compiler is installed")
@pytest.mark.parametrize("text", REFUSED)
def test_the_compiler_refuses(text: str) -> None:
    assert not compiles(text.replace("¦", ""))


def test_context() -> None:
    """Γ shows plain C types, and names given by the caller are in scope."""
    prefix = oracle().start(context={"limit": "const int", "g": "int (char const*, ...)"})
    whole = prefix.feed('typedef int *t; t f(double x[]) { static int n; n = g("a", x) + limit; return &n; }')
    assert whole.verdict is Verdict.SATISFIED, str(whole.explain())
    assert whole.context["f"] == "function defined int * (double *)"
    assert whole.context["t"] == "typedef int *"
    assert prefix.feed("void f(void) { limit = 1; }").verdict is Verdict.LOST


def test_the_twin_keeps_what_the_rules_refuse() -> None:
    twin = oracle().syntactic()
    assert twin.start().feed("int f(void) { return x + *1; }").verdict is Verdict.SATISFIED
    assert twin.start().feed("int f(void) { return + ; }").lost_at == 23


def test_rendering() -> None:
    grammar = oracle().grammar
    assert Grammar.parse(grammar.source()) == grammar


def test_growth_is_linear() -> None:
    """Items of a long file of equal functions grow with its length."""
    unit = "int f{}(int n) {{ int x = n * 2 + 1; if (x > 3) return f{}(n - 1); return x; }}\n"
    sizes = [
        feed("".join(unit.format(i, i) for i in range(count)))._state.hypotheses[0].items.total for count in (4, 8)
    ]
    assert sizes[1] < 2.1 * sizes[0]


# Expressions over an int i, a double d, an int* p and an int array a. Without literals but 0 in places of its own: the
# compiler takes every constant expression of value zero for a null pointer, the grammar only 0.
_LEAVES = st.sampled_from(
    [
        "i",
        "d",
        "p",
        "a",
        "&i",
        "*p",
        "a[i]",
        "p[0]",
        "(p == 0)",
        "(i ? p : 0)",
        "(i ? d : 0)",
        "i++",
        "(p = 0)",
        "(i = d)",
    ]
)
_OPERATORS = st.sampled_from(["+", "-", "*", "/", "%", "<", "==", "&&", "|", "<<", ",", "=", "+="])
_PREFIXES = st.sampled_from(["-", "!", "~", "*", "&", "++", "(int) ", "(int *) ", "(double) "])
_EXPRESSIONS = st.recursive(
    _LEAVES,
    lambda inner: st.one_of(
        st.tuples(inner, _OPERATORS, inner).map(" ".join),
        st.tuples(_PREFIXES, inner).map("".join),
        st.tuples(inner, inner, inner).map(lambda three: f"({three[0]} ? {three[1]} : {three[2]})"),
        inner.map("({})".format),
    ),
    max_leaves=4,
)


@pytest.mark.skipif(COMPILER is None, reason="no C compiler is installed")
@settings(max_examples=60, deadline=None)
@given(_EXPRESSIONS, st.sampled_from(["int", "double", "int *"]))
def test_expressions_agree_with_the_compiler(expression: str, returned: str) -> None:
    """Satisfied if and only if accepted."""
    text = f"{returned} f(int i, double d, int *p) {{ int a[3]; return {expression}; }}"
    assert (feed(text).verdict is Verdict.SATISFIED) is compiles(text), text
