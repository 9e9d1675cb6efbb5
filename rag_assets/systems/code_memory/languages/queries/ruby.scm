(comment) @comment

(class name: [(constant) @name (scope_resolution) @name]) @definition.class
(module name: [(constant) @name (scope_resolution) @name]) @definition.module
(method name: (_) @name) @definition.method
(singleton_method name: (_) @name) @definition.method
(assignment left: (constant) @name) @definition.constant
((call method: (identifier) @_form arguments: (argument_list . (simple_symbol) @name)) @definition.signature
  (#any-of? @_form "attr_reader" "attr_accessor" "define_method" "scope" "delegate"))

((call method: (identifier) @_form arguments: (argument_list (string))) @reference.import
  (#any-of? @_form "require" "require_relative" "load"))
((call method: (identifier) @_form arguments: (argument_list [
    (constant) @name
    (scope_resolution name: (constant) @name)
  ])) @reference.implementation
  (#any-of? @_form "include" "extend" "prepend"))
((call !receiver method: (identifier) @_form arguments: (argument_list
    [(constant) (scope_resolution)] @supertype.uses_trait))
  (#any-of? @_form "include" "extend" "prepend"))
(class superclass: (superclass [(constant) (scope_resolution)] @supertype.extends))
(superclass [(constant) @name (scope_resolution name: (constant) @name)]) @reference.implementation
((call !receiver method: (identifier) @name) @reference.call
  (#not-match? @name "^(require|require_relative|include|extend|prepend|attr_reader|attr_accessor)$"))
(call receiver: (_) @receiver method: [(identifier) @name (constant) @name]) @reference.call
(body_statement (identifier) @name @reference.call)
(scope_resolution name: (constant) @name) @reference.type
(constant) @name @reference.type
