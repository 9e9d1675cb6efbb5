(comment) @comment

((list_lit . (sym_lit name: (sym_name) @_form) . (sym_lit name: (sym_name) @name)) @definition.module
  (#eq? @_form "ns"))
((list_lit . (sym_lit name: (sym_name) @_form) . (sym_lit name: (sym_name) @name)) @definition.function
  (#any-of? @_form "defn" "defn-" "defmacro" "defmulti" "deftest"))
((list_lit . (sym_lit name: (sym_name) @_form) . (sym_lit name: (sym_name) @name)) @definition.class
  (#any-of? @_form "defrecord" "deftype" "defprotocol" "definterface"))
((list_lit . (sym_lit name: (sym_name) @_form) . (sym_lit name: (sym_name) @name)) @definition.constant
  (#any-of? @_form "def" "defonce"))
((list_lit
  . (sym_lit name: (sym_name) @_form)
  (list_lit . (sym_lit name: (sym_name) @name)) @definition.signature)
  (#eq? @_form "defprotocol"))

((list_lit
  . (sym_lit name: (sym_name) @_form)
  (list_lit . (kwd_lit name: (kwd_name) @_kind)) @reference.import)
  (#eq? @_form "ns") (#any-of? @_kind "require" "use" "import"))
((list_lit . (sym_lit !namespace name: (sym_name) @name)) @reference.call
  (#not-match? @name "^(def.*|ns|let|if|when|fn|do|cond|loop|recur|case|quote|var|try|catch|throw|new|->>?)$"))
(list_lit . (sym_lit namespace: (sym_ns) @receiver name: (sym_name) @name)) @reference.call
