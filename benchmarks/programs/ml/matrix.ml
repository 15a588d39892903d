let size = 3

let identity (n : int) : int array array =
  Array.init n (fun i -> Array.init n (fun j -> if i = j then 1 else 0))

let multiply (a : int array array) (b : int array array) : int array array =
  let n = Array.length a in
  let result = Array.make_matrix n n 0 in
  for i = 0 to n - 1 do
    for j = 0 to n - 1 do
      let total = ref 0 in
      for k = 0 to n - 1 do
        total := !total + a.(i).(k) * b.(k).(j)
      done;
      result.(i).(j) <- !total
    done
  done;
  result

(* Powers by squaring. *)
let rec power m n =
  if n = 0 then identity size
  else if n mod 2 = 0 then let half = power m (n / 2) in multiply half half
  else multiply m (power m (n - 1))

let () = Array.iter (fun row -> Array.iter print_int row) (power (identity size) 5)
