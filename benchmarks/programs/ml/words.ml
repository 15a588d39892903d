let greet : string -> string =
  fun (name : string) -> "hello, " ^ name

let rec fold : (int -> string -> int) -> int -> string list -> int =
  fun (f : int -> string -> int) -> fun (start : int) -> fun (words : string list) ->
    match words with
    | [] -> start
    | first :: rest -> fold f (f start first) rest

let longest : string list -> int =
  fun (words : string list) ->
    fold (fun (best : int) -> fun (word : string) -> max best (String.length word)) 0 words

let () = print_endline (greet "world")
