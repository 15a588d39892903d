type expression =
  | Number of int
  | Variable of string
  | Sum of expression * expression
  | Product of expression * expression

exception Unbound of string

let rec lookup (name : string) (bindings : (string * int) list) : int =
  match bindings with
  | [] -> raise (Unbound name)
  | (key, value) :: rest -> if key = name then value else lookup name rest

let rec evaluate (bindings : (string * int) list) (e : expression) : int =
  match e with
  | Number n -> n
  | Variable name -> lookup name bindings
  | Sum (a, b) -> evaluate bindings a + evaluate bindings b
  | Product (a, b) -> evaluate bindings a * evaluate bindings b

let area : expression = Product (Variable "width", Sum (Number 2, Variable "height"))

let () = print_int (evaluate [("width", 3); ("height", 4)] area)
