(comment) @comment

(class_declaration name: (identifier) @name) @definition.class
(interface_declaration name: (identifier) @name) @definition.class
(record_declaration name: (identifier) @name) @definition.class
(struct_declaration name: (identifier) @name) @definition.class
(enum_declaration name: (identifier) @name) @definition.type
(delegate_declaration name: (identifier) @name) @definition.type
(namespace_declaration name: (_) @name) @definition.module
(method_declaration name: (identifier) @name) @definition.method
(constructor_declaration name: (identifier) @name) @definition.method
(local_function_statement name: (identifier) @name) @definition.function
(property_declaration name: (identifier) @name) @definition.signature
((field_declaration
  (modifier) @_form
  (variable_declaration (variable_declarator name: (identifier) @name))) @definition.constant
  (#eq? @_form "const"))

(using_directive) @reference.import
(base_list [
  (identifier) @name
  (generic_name (identifier) @name)
  (qualified_name name: (identifier) @name)
  (qualified_name name: (generic_name (identifier) @name))
  (primary_constructor_base_type type: (identifier) @name)
]) @reference.implementation
(interface_declaration (base_list [(identifier) (generic_name) (qualified_name)] @supertype.extends))
([
  (class_declaration (base_list [(identifier) (generic_name) (qualified_name)] @supertype.extends))
  (record_declaration (base_list [
    (identifier)
    (generic_name)
    (qualified_name)
    (primary_constructor_base_type)
  ] @supertype.extends))
] (#not-match? @supertype.extends "^([A-Za-z0-9_]+[.])*I[A-Z]"))
([
  (class_declaration (base_list [(identifier) (generic_name) (qualified_name)] @supertype.implements))
  (record_declaration (base_list [(identifier) (generic_name) (qualified_name)] @supertype.implements))
  (struct_declaration (base_list [(identifier) (generic_name) (qualified_name)] @supertype.implements))
] (#match? @supertype.implements "^([A-Za-z0-9_]+[.])*I[A-Z]"))
(invocation_expression function: [
  (identifier) @name
  (generic_name (identifier) @name)
]) @reference.call
(invocation_expression function: (member_access_expression
  expression: _ @receiver
  name: [(identifier) @name (generic_name (identifier) @name)])) @reference.call
(invocation_expression function: (conditional_access_expression
  condition: (_) @receiver
  (member_binding_expression name: (identifier) @name))) @reference.call
(object_creation_expression type: [
  (identifier) @name
  (generic_name (identifier) @name)
  (qualified_name name: (identifier) @name)
]) @reference.call
(attribute name: (identifier) @name) @reference.type
(parameter type: [(identifier) @name (generic_name (identifier) @name)]) @reference.type
(variable_declaration type: [(identifier) @name (generic_name (identifier) @name)]) @reference.type
(property_declaration type: [(identifier) @name (generic_name (identifier) @name)]) @reference.type
(method_declaration returns: [(identifier) @name (generic_name (identifier) @name)]) @reference.type
(type_argument_list (identifier) @name) @reference.type
