open Shop.Store

let max_lines = 10

type order = { id : int }

module Repo = struct
  let find id = Hashtbl.find table id
end

module type Priced = sig
  val price : order -> int
end

class cart = object
  inherit base
  method total = 1
end

let create lines =
  let made = summed lines in
  Repo.find made

exception Missing of string
