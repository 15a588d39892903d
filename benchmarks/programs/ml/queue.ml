type 'a tree = Leaf | Node of 'a tree * 'a * 'a tree

let rec insert : int tree -> int -> int tree =
  fun (t : int tree) -> fun (n : int) ->
    match t with
    | Leaf -> Node (Leaf, n, Leaf)
    | Node (left, m, right) ->
      if n < m then Node (insert left n, m, right)
      else Node (left, m, insert right n)

let rec total : int tree -> int =
  fun (t : int tree) ->
    match t with
    | Leaf -> 0
    | Node (left, m, right) -> total left + m + total right

(* The elements of a list, sorted in a tree and summed. *)
let rec build : int list -> int tree =
  fun (items : int list) ->
    match items with
    | [] -> Leaf
    | first :: rest -> insert (build rest) first

let answer : int = total (build [3; 1; 2])
