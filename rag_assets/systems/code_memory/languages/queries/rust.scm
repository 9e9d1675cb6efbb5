(line_comment) @comment
(block_comment) @comment

(struct_item name: (type_identifier) @name) @definition.class
(enum_item name: (type_identifier) @name) @definition.class
(union_item name: (type_identifier) @name) @definition.class
(trait_item name: (type_identifier) @name) @definition.class
(type_item name: (type_identifier) @name) @definition.type
(mod_item name: (identifier) @name) @definition.module
(function_item name: (identifier) @name) @definition.function
(function_signature_item name: (identifier) @name) @definition.signature
(macro_definition name: (identifier) @name) @definition.function
(const_item name: (identifier) @name) @definition.constant
(static_item name: (identifier) @name) @definition.constant
(impl_item type: [(type_identifier) @name (generic_type type: (type_identifier) @name)]) @scope

(use_declaration) @reference.import
(impl_item trait: [
  (type_identifier) @name
  (generic_type type: (type_identifier) @name)
  (scoped_type_identifier name: (type_identifier) @name)
]) @reference.implementation
(call_expression function: [
  (identifier) @name
  (generic_function function: (identifier) @name)
]) @reference.call
(call_expression function: (field_expression value: (_) @receiver field: (field_identifier) @name)) @reference.call
(call_expression function: (generic_function
  function: (field_expression value: (_) @receiver field: (field_identifier) @name))) @reference.call
(call_expression function: (scoped_identifier path: (_) @receiver name: (identifier) @name)) @reference.call
(macro_invocation macro: [
  (identifier) @name
  (scoped_identifier name: (identifier) @name)
]) @reference.call
(attribute_item (attribute (token_tree (identifier) @name))) @reference.type
(type_identifier) @name @reference.type
