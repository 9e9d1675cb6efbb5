(comment) @comment

(function_declaration name: (identifier) @name) @definition.function
(method_declaration
  receiver: (parameter_list (parameter_declaration type: [
    (type_identifier) @owner
    (pointer_type (type_identifier) @owner)
    (pointer_type (generic_type type: (type_identifier) @owner))
    (generic_type type: (type_identifier) @owner)
  ]))
  name: (field_identifier) @name) @definition.method
(type_spec name: (type_identifier) @name type: (struct_type)) @definition.class
(type_spec name: (type_identifier) @name type: (interface_type)) @definition.class
(type_spec name: (type_identifier) @name type: [
  (type_identifier) (qualified_type) (pointer_type) (slice_type) (map_type) (function_type) (array_type)
  (channel_type) (generic_type)
]) @definition.type
(type_alias name: (type_identifier) @name) @definition.type
(source_file (const_declaration (const_spec name: (identifier) @name) @definition.constant))
(source_file (var_declaration (var_spec name: (identifier) @name) @definition.constant))

(import_spec path: (_) @reference.import)
(call_expression function: [
  (identifier) @name
  (parenthesized_expression (identifier) @name)
]) @reference.call
(call_expression function: (selector_expression
  operand: (_) @receiver field: (field_identifier) @name)) @reference.call
(type_identifier) @name @reference.type
