"""Core ML against hand-written programs, and against `ocamlc` where it is installed."""

from __future__ import annotations

import shutil
import subprocess
from functools import cache
from pathlib import Path

import pytest

from aufbau import Grammar, Oracle, Prefix, Verdict

COMPILER = shutil.which("ocamlc")

# Programs that ocamlc accepts, with the type of the last definition or expression ("" where it has none).
ACCEPTED = [
    ("", ""),
    ("let x : int = 1 + 2 * 3 - 4 / 5 mod 6", "int"),
    ("let f (x : int) (y : bool) : int = if y then x else -x\nlet a : int = f 3 true", "int"),
    ("let rec fact : int -> int = fun (n : int) -> if n = 0 then 1 else n * fact (n - 1)", "int -> int"),
    ("let rec even (n : int) : bool = n = 0 || not (even (n - 1))", "int -> bool"),
    ("1 :: 2 :: []", "int list"),
    ("[1; 2 + 3; 4;]", "int list"),
    ("let l : bool list list = [[true]; []] let h : bool list = List.hd l", "bool list"),
    ("let rec sum (l : int list) : int = match l with [] -> 0 | h :: t -> h + sum t", "int list -> int"),
    ("let rec last (l : int list) : int =\n  match l with\n  | [x] -> x\n  | _ :: (y :: _ as t) when y > 0 -> last t\n"
     "  | _ -> assert false", "int list -> int"),
    ("let swap (p : int * bool) : bool * int = match p with (a, b) -> (b, a)", "int * bool -> bool * int"),
    ("let (a, (b, c)) : int * (bool * string) = 1, (true, \"x\") let d : string = c", "string"),
    ("let a, b = 1, true in if b then a else 2", "int"),
    ("let (a, b) = (1, 2) let (b, a) = (a, b)", "int * int"),
    ("let a = 1 let a = true and b = a + 1", "int"),
    ("let s : string = \"a\\n\\065\" ^ \"(* no comment *)\"", "string"),
    ("(* a (* nested *) \"*)\" comment *) let x : char = 'a' (**)", "char"),
    ("let x' : char = '\\'' and y : char = '\"'", "char"),
    ("let f : float = 1.5e3 +. 2. ** -. 1. *. -2.5", "float"),
    ("let big : int = 4611686018427387903 + 0x1F + 0b101 + 0o17 + 1_000", "int"),
    ("let b : bool = 1 < 2 = true && \"a\" <> \"b\" || [1] = [2]", "bool"),
    ("let r : int ref = ref 0\nlet () = r := !r + 1; incr r; print_int !r", "unit"),
    ("let rec loop (n : int) : unit = if n > 0 then (print_int n; loop (n - 1))", "int -> unit"),
    ("let f (n : int) : unit = for i = 1 to n do print_int i; while false do () done done", "int -> unit"),
    ("let f (x : int) : int = let y : int = x + 1 in let z : int = y in y * z", "int -> int"),
    ("let f (x : int) : unit = if x > 0 then if x > 1 then print_int x else print_int 0", "int -> unit"),
    ("let f (x : int) : unit = if x > 0 then let y = x in print_int y else ()", "int -> unit"),
    ("let f (x : int) : int = 1 + if x > 0 then 2 else 3 * x", "int -> int"),
    ("let f (x : int) : int list = 0 :: x :: match x with 0 -> [] | _ -> [x]", "int -> int list"),
    ("let f (x : int) (l : int list) : bool = x > 0 && match l with [] -> true | _ -> false",
     "int -> int list -> bool"),
    ("let f (x : int list) (y : int list) : int = match x with [] -> (match y with [] -> 0 | _ -> 1) | _ -> 2",
     "int list -> int list -> int"),
    ("let f (x : int list) (y : int list) : int = match x with [] -> 0 | a :: _ -> match y with [] -> a | b :: _ -> b",
     "int list -> int list -> int"),
    ("let f : int -> int -> int = function 0 -> fun y -> y | x -> fun y -> x + y", "int -> int -> int"),
    ("type shape = Circle of float | Box of float * float | Empty\n"
     "let area (s : shape) : float = match s with Circle r -> r *. r | Box (a, b) -> a *. b | Empty -> 0.",
     "shape -> float"),
    ("type exp = Num of int | Plus of exp * exp\nlet rec eval (exp : exp) : int = match exp with\n"
     "  | Num n -> n\n  | Plus (a, b) -> eval a + eval b\nlet n : int = eval (Plus (Num 1, Plus (Num 2, Num 3)))",
     "int"),
    ("type t = A of u | B and u = C of t * u | D", ""),
    ("type l = V of v | P of v * l and v = string let f : l -> string = function V x -> x | P (x, _) -> x",
     "l -> string"),
    ("type env = (string * int) list let e : env = [(\"x\", 1)] let n : int = List.assoc \"x\" e", "int"),
    ("type t = A | B of int let f (x : t) : int = match x with A | B 0 -> 0 | B n -> n", "t -> int"),
    ("type t = A of int | B of int let f (x : t) : int = match x with A n | B n -> n", "t -> int"),
    ("type t = P of (int * int) let f (p : int * int) : t = P p let g : t = P (1, 2)", "t"),
    ("type t = P of int * int let f (x : t) : bool = match x with P _ -> true", "t -> bool"),
    ("exception Empty exception Bad of string\n"
     "let f (l : int list) : int = match l with [] -> raise Empty | h :: _ -> h\n"
     "let g : int = try f [] with Empty -> 0 | Bad s -> int_of_string s", "int"),
    ("let o : int option = Some 1 let n : int = match o with None -> 0 | Some x -> x", "int"),
    ("let l : int list = List.map (fun (x : int) -> x + 1) [1; 2] @ List.filter (fun x -> x > 1) [3]", "int list"),
    ("let n : int = List.fold_left (fun a x -> a + x) 0 [1; 2; 3]", "int"),
    ("let f = fun x -> x let a = f 1 let b = f true", "bool"),
    ("let rec map f l = match l with [] -> [] | h :: t -> f h :: map f t", "(?A -> ?B) -> ?A list -> ?B list"),
    ("let compose f g x = f (g x)", "(?A -> ?B) -> (?C -> ?A) -> ?C -> ?B"),
    ("let a : int array = [|1; 2|] let () = a.(0) <- a.(1) + 1 let c : char = \"ab\".[0]", "char"),
    ("let x : int = begin 1 end;; x + 1;; let y : int = x", "int"),
    ("let f : int -> int -> int = ( + ) let g : int -> int -> bool = (<) let h : int -> int -> int = ( * )",
     "int -> int -> int"),
    ("let abs (x : bool) : bool = x let b : bool = abs true", "bool"),
    ("let f (_ : int) () [] (a, _) : int = a", "int -> unit -> ?A list -> int * ?B -> int"),
    ("let t : int * bool * string = (1, true, \"\") let u : (int * bool) * string = ((1, true), \"\")",
     "(int * bool) * string"),
    ("let f (x : int) : int = (fun (y : int) -> y + x) 3", "int -> int"),
    ("let x : int = (let f (a : int) : int = a in f) 1", "int"),
    ("let x : int = assert (1 > 0); assert false", "int"),
    ("let f (g : int -> bool) : int = g 1; (g 2; 3)", "(int -> bool) -> int"),
    ("let x : int = (1;) + begin print_int 1; 2; end", "int"),
    ("let f (b : bool) : unit = if b then print_int 1; match b with true -> print_int 2; | false -> ();",
     "bool -> unit"),
    ("let () = Printf.printf \"%d%% %s\\n\" 1 \"a\"; List.iter (Printf.printf \"%5.2f\") [1.]", "unit"),
    ("let ( |> ) : int -> (int -> int) -> int = fun (x : int) -> fun (f : int -> int) -> f x\n"
     "let a : int = ( |> ) 1 succ", "int"),
    ("let ( ++ ) a b = a + 2 * b let rec (^^) x = x let f : int -> int = ( ++ ) 1 let b : bool = (^^) true", "bool"),
    ("let rec f : int -> int = let y : int = 1 in fun (x : int) -> f (x - y)", "int -> int"),
    ("let f (x : bool) : int = if x; then let y : int = 1 in y; else match x with true -> 1; | _ -> begin 2; end;\n"
     "type t = A let a : t = A; ;; let b : int list = [1; let x : int = 2 in x;]", "int list"),
    ("let f (p : int * int * int) : int = match p with a, 1, b | 1, b, a | b, a, (2 | 3) -> a - b | _ -> 0",
     "int * int * int -> int"),
    ("let f (l : int list) : int = match l with ([a] as b) | (_ :: a :: _ as b) -> a + List.length b | [] -> 0",
     "int list -> int"),
    ("let f (p : int list * int list) : int = match p with ([a] | [_; a]), ([b] | [_; b] | _ :: _ :: b :: _) -> a + b"
     " | _ -> 0", "int list * int list -> int"),
    ("type 'a tree = Leaf | Node of 'a tree * 'a * 'a tree\n"
     "let rec size t = match t with Leaf -> 0 | Node (l, _, r) -> size l + 1 + size r\n"
     "let a : int = size (Node (Leaf, 1, Leaf)) + size (Node (Leaf, true, Leaf)) let b : bool tree = Leaf",
     "bool tree"),
    ("type ('k, 'v) map = Empty | Bind of 'k * 'v * ('k, 'v) map and key = string\n"
     "let rec find (k : key) (m : (key, 'v) map) : 'v = match m with\n"
     "  | Empty -> raise Not_found\n  | Bind (a, v, r) -> if a = k then v else find k r\n"
     "let a : int = find \"a\" (Bind (\"a\", 1, Empty)) let b : bool = find \"\" Empty", "bool"),
    ("type 'a pair = 'a * 'a type ('a, 'b) assoc = ('a * 'b) list\n"
     "let swap ((a, b) : 'a pair) : 'a pair = (b, a)\n"
     "let f (l : (int, bool) assoc) : int pair = swap (List.length l, 1)",
     "(int * bool) list -> int * int"),
    ("let f : 'a list -> int = fun (l : 'a list) -> List.length l let n : int = f [1] + f [true]", "int"),
    ("let f (x : 'a) : 'a = x + 1 let c : char = 'a'", "char"),
]  # fmt: skip

# Programs that ocamlc refuses; ¦ stands before the byte at which they are lost. Without ¦ they are live to the end.
REFUSED = [
    "let x : int = 1 + tru¦e",  # truncate
    "let x : bool = (1 +¦. 2.)",
    "let x : int = ¦[]",
    "let x : int = ¦\"a\"",
    "let x : bool = 1 = fa¦lse",
    "let x : int list = 1 :: ¦'c' :: []",
    "let x : int list = [1; ¦'a']",
    "let f (x : int) : int = x let y : int = f ¦\"\"",
    "let f (x : int) : int = x let y : int = f 1 ¦2",
    "let g (x : int) : int = ¦q x",
    "let g : int -> int = fun (x : int) -> ¦g x",
    "let y : int = ¦y",
    "let f (x : int) : f¦oo = x",
    "let rec f : int -> int = fun (x : ¦bool) -> 1",
    "let f (x, x¦) = 1",
    "match [1] with x :: x¦ -> 1",
    "let rec x : int ¦= x + 1",
    "let a=¦-1",
    "let a = 1¦x",
    "let x : int = 461168601842738790¦5",
    "let letx¦;",
    "let class¦ : int = 1",
    "let f (l : int list) : int = match l with [] -> 0 | h :: t -> t¦ ",
    "let g (l : int list) : int = match l with [] -> 0 | h :: t -> h + ¦g t",
    "let f (l : int list) : int = match l with 0 ¦-> 1",
    "let f (p : int * bool) : int = match p with (a, b) -> b¦ ",
    "let f (p : int * bool) : int = match p with (a, b¦, c) -> a",
    "let x : int * bool = (1, 2¦)",
    "let x : int * bool = (1, true¦, 2)",
    "type t = A | B of int let x : t = A ¦1",
    "type t = A | B of int let x : t = B¦;",
    "type t = A of int * int let x : t = A (1, ¦'a')",
    "type t = A of u l¦et x : int = 1",
    "type t = A type t¦ = B",
    "type t = A | A¦ ",
    "type t = A of int * int let f (x : t) : int = match x with A ¦n -> 1",
    "let x : string = \"a\" ^ ¦1",
    "let x : float = 1. +¦ 2.",
    "let x : int = List.length ¦1",
    "let x : int list = List.map ¦1 [1]",
    "if 1 ¦then 2 else 3",
    "if true then 1",
    "let x : int = if true then 1 else fa¦lse",
    "let (a, b) = (1, 2) in let c : bool = a¦;",
    "let x : int = 1 let 2¦;",
    "(* unfinished",
    "let s : string = \"\\¦999\"",
    "let x : int = (1 : ¦bool)",
    "let f x = x + 1 let a = f ¦'a'",
    "let f x = x ¦x",
    "let r : int ref = ref true",
    "let x : exn = Failure¦;",
    "let x : int = (1; ¦\"a\")",
    "let () = Printf.printf \"%d\" ¦true",
    "let x : int = 1 +¦+ 2",
    "let x : int =\r¦1",
    "let x : int = 1; ¦let y : int = 2",
    "exception A exception A¦ ",
    "let a = [|ref 1|] let x = ! ¦a.(0)",
    "let¦- 1 = 1 in true",
    "let f (p : int * int) : int = match p with a, 1 | _, 2¦ -> 1",
    "let f (p : int * int) : int = match p with _, 1 | 2, ¦a -> 1",
    "let f (p : int * int) : int = match p with a, 1 | a, ¦a -> 1",
    "let f (p : int * int) : int = match p with (a, 1 as b) | a, 2¦ -> 1",
    "type 'a t = A of 'a let x : int t = A ¦true",
    "type 'a t = A of '¦b",
    "type ('a, 'a¦) t = A",
    "type t = A of ¦'a",
    "type 'a t = A let x : ¦t = A",
    "let f (x : 'a) (y : 'a) : int = x + 1 let a : int = f 1 ¦true",
]  # fmt: skip

# What ocamlc accepts and the grammar refuses: its boundary (ml.md).
BEYOND = [
    "let x : int = 1; ¦2",
    "let rec x : int ¦= 4",
    "let rec f (n : int) : int = ¦g n and g (n : int) : int = n",
    "let e = [] let a = 1 :: e let b = true :: e¦ ",
    "let f (x : int) : int = x ¦|> abs",
    "let ( ++ ) a b = a + b let x : int = 1 +¦+ 2",
    "type r = ¦{a : int}",
    "mod¦ule M = struct end",
    "(* 1 (* 2 (* 3 (* 4 (¦* 5 *) *) *) *) *) let x : int = 1",
    "type ('a¦) t = A of 'a",
    "type 'a t = A of 'a ¦u and 'a u = B of 'a",
    "let x : char = 'a' (* '\"' *)",
]

# What the grammar accepts and ocamlc refuses (ml.md).
LAXER = [
    "let r = ref []",
    "let f x = 1 and f x = 2",
    "let f (x : int * int list) : int = match x with a, ([b] | [a]) -> a | _ -> 2",
]


@cache
def oracle() -> Oracle:
    return Oracle(Grammar.load("ml"))


@cache
def start() -> Prefix:
    return oracle().start()


def compiles(text: str, folder: Path) -> bool:
    """The word of the compiler; its warnings do not count."""
    assert COMPILER is not None
    source = folder / "program.ml"
    source.write_text(text, encoding="utf-8")
    done = subprocess.run([COMPILER, "-w", "-a", "-c", str(source)], capture_output=True, timeout=20, check=False)
    return done.returncode == 0


def feed(text: str) -> Prefix:
    """The prefix after a text fed byte by byte."""
    prefix = start()
    for byte in text.encode():
        prefix = prefix.feed(bytes((byte,)))
    return prefix


def check_refused(marked: str) -> None:
    """Lost at the mark and not before; without a mark, live."""
    before, mark, after = marked.partition("¦")
    prefix = feed(before + after)
    assert prefix.verdict is (Verdict.LOST if mark else Verdict.LIVE), str(prefix.explain())
    assert prefix.lost_at == (len(before.encode()) if mark else None), str(prefix.explain())


@pytest.mark.parametrize(("text", "wanted"), ACCEPTED, ids=[text[:40] for text, _ in ACCEPTED])
def test_accepted(text: str, wanted: str) -> None:
    prefix = feed(text)
    assert prefix.verdict is Verdict.SATISFIED, str(prefix.explain())
    assert prefix.types == ((wanted,) if wanted else ())
    whole = start().feed(text)
    assert (whole.verdict, whole.types) == (prefix.verdict, prefix.types)


@pytest.mark.parametrize("marked", REFUSED, ids=[text[:40] for text in REFUSED])
def test_refused(marked: str) -> None:
    check_refused(marked)


@pytest.mark.parametrize("marked", BEYOND, ids=[text[:40] for text in BEYOND])
def test_beyond_the_boundary(marked: str) -> None:
    check_refused(marked)


@pytest.mark.parametrize("text", LAXER)
def test_laxer(text: str) -> None:
    assert feed(text).verdict is Verdict.SATISFIED


@pytest.mark.skipif(COMPILER is None, reason="ocamlc is not installed")
def test_the_compiler_agrees(tmp_path: Path) -> None:
    for text in [text for text, _ in ACCEPTED] + [marked.replace("¦", "") for marked in BEYOND]:
        assert compiles(text, tmp_path), text
    for marked in REFUSED + LAXER:
        assert not compiles(marked.replace("¦", ""), tmp_path), marked


def test_the_goal_is_the_type_of_the_last_definition() -> None:
    prefix = oracle().start(goal="int list -> int")
    assert prefix.feed("let one (l : int list) : int = 1").verdict is Verdict.SATISFIED
    assert prefix.feed("let one (l : int list) : bool = true").verdict is Verdict.LIVE
    assert prefix.feed("let one (l : int list) : bool = true let two (l : int list) : int = 2").verdict is (
        Verdict.SATISFIED
    )


def test_names_given_from_outside() -> None:
    prefix = oracle().start(context={"limit": "int", "flag": "bool"}, goal="int", symbol="Sequence")
    assert prefix.feed("limit + 1").verdict is Verdict.SATISFIED
    assert prefix.feed("flag").lost_at == 2  # flush begins with fl, and may be called in a statement


def test_the_syntactic_twin_keeps_what_the_grammar_keeps() -> None:
    twin = oracle().syntactic().start()
    for text, _ in ACCEPTED:
        assert twin.feed(text).verdict is Verdict.SATISFIED, text
