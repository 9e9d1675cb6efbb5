(comment) @comment

(binary_operator
  lhs: [(identifier) @name (string (string_content) @name)]
  operator: ["<-" "=" "<<-"]
  rhs: (function_definition)) @definition.function
(program (binary_operator
  lhs: (identifier) @name
  operator: ["<-" "="]
  rhs: [(float) (integer) (string) (true) (false)]) @definition.constant)
((call function: (identifier) @_form
  arguments: (arguments . (argument value: (string (string_content) @name)))) @definition.class
  (#any-of? @_form "setClass" "setRefClass" "R6Class"))
((call function: (identifier) @_form
  arguments: (arguments . (argument value: (string (string_content) @name)))) @definition.function
  (#any-of? @_form "setGeneric" "setMethod"))

((call function: (identifier) @_form) @reference.import
  (#any-of? @_form "library" "require" "source" "requireNamespace"))
((call function: (identifier) @name) @reference.call
  (#not-match? @name "^(library|require|source|requireNamespace)$"))
(call function: (extract_operator lhs: (_) @receiver rhs: (identifier) @name)) @reference.call
(call function: (namespace_operator lhs: (_) @receiver rhs: (identifier) @name)) @reference.call
