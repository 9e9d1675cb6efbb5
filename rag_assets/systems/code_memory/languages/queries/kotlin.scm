(line_comment) @comment
(multiline_comment) @comment

(class_declaration (type_identifier) @name) @definition.class
(object_declaration (type_identifier) @name) @definition.class
(type_alias . (type_identifier) @name) @definition.type
(function_declaration (simple_identifier) @name) @definition.function
(property_declaration
  (modifiers (property_modifier))
  (variable_declaration (simple_identifier) @name)) @definition.constant

(import_header) @reference.import
(delegation_specifier [
  (user_type (type_identifier) @name)
  (constructor_invocation (user_type (type_identifier) @name))
  (explicit_delegation (user_type (type_identifier) @name))
]) @reference.implementation
(class_declaration "interface" (delegation_specifier (user_type) @supertype.extends))
(class_declaration ["class" "enum"] (delegation_specifier [
  (user_type) @supertype.implements
  (explicit_delegation (user_type) @supertype.implements)
  (constructor_invocation (user_type) @supertype.extends)
]))
(object_declaration (delegation_specifier [
  (user_type) @supertype.implements
  (explicit_delegation (user_type) @supertype.implements)
  (constructor_invocation (user_type) @supertype.extends)
]))
(call_expression . (simple_identifier) @name) @reference.call
(call_expression . (navigation_expression
  . (_) @receiver
  (navigation_suffix (simple_identifier) @name))) @reference.call
(callable_reference (simple_identifier) @name .) @reference.call
(user_type (type_identifier) @name .) @reference.type
