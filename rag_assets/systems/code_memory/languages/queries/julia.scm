(line_comment) @comment
(block_comment) @comment

(module_definition name: (identifier) @name) @definition.module
(struct_definition (type_head [
  (identifier) @name
  (binary_expression . (identifier) @name)
  (parametrized_type_expression . (identifier) @name)
  (binary_expression . (parametrized_type_expression . (identifier) @name))
])) @definition.class
(abstract_definition (type_head [
  (identifier) @name
  (binary_expression . (identifier) @name)
])) @definition.type
(function_definition (signature (call_expression . [
  (identifier) @name
  (field_expression (identifier) @name .)
]))) @definition.function
(function_definition (signature (typed_expression (call_expression . (identifier) @name)))) @definition.function
(function_definition (signature (where_expression (call_expression . (identifier) @name)))) @definition.function
(assignment . (call_expression . (identifier) @name)) @definition.function
(macro_definition (signature (call_expression . (identifier) @name))) @definition.function
(const_statement (assignment . (identifier) @name)) @definition.constant

(using_statement) @reference.import
(import_statement) @reference.import
(type_head (binary_expression (operator) (identifier) @name .)) @reference.implementation
(call_expression . (identifier) @name) @reference.call
(call_expression . (field_expression value: (_) @receiver (identifier) @name .)) @reference.call
(macrocall_expression (macro_identifier (identifier) @name)) @reference.call
(typed_expression (identifier) @name .) @reference.type
