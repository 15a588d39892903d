type reading = Missing | Value of float

let parse (text : string) : reading =
  match float_of_string_opt text with
  | Some x -> Value x
  | None -> Missing

let values readings =
  List.filter_map (function Value x -> Some x | Missing -> None) readings

let mean (xs : float list) : float option =
  match xs with
  | [] -> None
  | _ ->
    let total = List.fold_left (fun sum x -> sum +. x) 0.0 xs in
    Some (total /. float_of_int (List.length xs))

let compose f g x = g (f x)

let summary : string list -> string =
  compose (List.map parse) (fun readings ->
    match mean (values readings) with
    | Some m when m > 100.0 -> "high"
    | Some _ -> "normal"
    | None -> "no data")

let () =
  let text = summary ["1.5"; "x"; "2.25"] in
  print_endline (String.uppercase_ascii text);
  print_newline ()
