(comment) @comment

(class_definition name: (identifier) @name) @definition.class
(function_definition name: (identifier) @name) @definition.function
(module (expression_statement (assignment left: (identifier) @name)) @definition.constant)

(import_statement) @reference.import
(import_from_statement) @reference.import
(class_definition superclasses: (argument_list [
  (identifier) @name
  (attribute attribute: (identifier) @name)
  (subscript value: (identifier) @name)
])) @reference.implementation
(call function: (identifier) @name) @reference.call
(call function: (attribute object: (_) @receiver attribute: (identifier) @name)) @reference.call
(decorator [(identifier) @name (attribute attribute: (identifier) @name)]) @reference.call
(type (identifier) @name) @reference.type
(type (generic_type (identifier) @name)) @reference.type
(type (attribute attribute: (identifier) @name)) @reference.type
(type (subscript value: (identifier) @name)) @reference.type
