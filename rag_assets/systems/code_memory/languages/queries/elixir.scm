(comment) @comment

((call target: (identifier) @_form (arguments (alias) @name)) @definition.module
  (#any-of? @_form "defmodule" "defprotocol"))
((call target: (identifier) @_form (arguments . [
    (identifier) @name
    (call target: (identifier) @name)
    (binary_operator left: (call target: (identifier) @name) operator: "when")
  ])) @definition.function
  (#any-of? @_form "def" "defp" "defmacro" "defmacrop" "defguard" "defdelegate"))
((unary_operator operator: "@" operand: (call target: (identifier) @name (arguments [
    (integer) (string) (atom) (list) (tuple) (map) (float) (sigil) (boolean)]))) @definition.constant
  (#not-match? @name "^(doc|moduledoc|typedoc|spec|impl|behaviour|type|callback|tag|derive)$"))

((call target: (identifier) @_form (arguments (alias))) @reference.import
  (#any-of? @_form "alias" "import" "require" "use"))
((call target: (identifier) @_form (arguments (dot))) @reference.import
  (#eq? @_form "alias"))
((unary_operator operator: "@" operand: (call target: (identifier) @_form (arguments (alias) @name)))
  @reference.implementation (#eq? @_form "behaviour"))
((unary_operator operator: "@" operand: (call target: (identifier) @_form
    (arguments (alias) @supertype.implements))) (#eq? @_form "behaviour"))
((call target: (identifier) @name) @reference.call
  (#not-match? @name "^(def.*|alias|import|require|use|if|unless|case|cond|with|for|quote|unquote|doc|moduledoc|spec)$"))
(call target: (dot left: (_) @receiver right: (identifier) @name)) @reference.call
(struct (alias) @name) @reference.type
