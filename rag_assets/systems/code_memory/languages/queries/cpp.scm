(comment) @comment

(class_specifier name: (_) @name body: (_)) @definition.class
(struct_specifier name: (_) @name body: (_)) @definition.class
(union_specifier name: (_) @name body: (_)) @definition.type
(enum_specifier name: (_) @name body: (_)) @definition.type
(alias_declaration name: (type_identifier) @name) @definition.type
(type_definition declarator: (type_identifier) @name) @definition.type
(concept_definition name: (identifier) @name) @definition.type
(namespace_definition name: (_) @name) @definition.module
(preproc_def name: (identifier) @name value: (_)) @definition.constant
(preproc_function_def name: (identifier) @name) @definition.function
(function_definition
  declarator: [
    (function_declarator
      declarator: [(identifier) (field_identifier) (qualified_identifier) (destructor_name) (operator_name)] @name)
    (pointer_declarator declarator: (function_declarator
      declarator: [(identifier) (field_identifier) (qualified_identifier)] @name))
    (reference_declarator (function_declarator
      declarator: [(identifier) (field_identifier) (qualified_identifier) (operator_name)] @name))
  ]) @definition.function
(field_declaration
  declarator: [
    (function_declarator declarator: (field_identifier) @name)
    (pointer_declarator declarator: (function_declarator declarator: (field_identifier) @name))
    (reference_declarator (function_declarator declarator: (field_identifier) @name))
  ]) @definition.signature

(preproc_include path: (_) @reference.import)
(using_declaration) @reference.import
(base_class_clause [
  (type_identifier) @name
  (qualified_identifier name: (type_identifier) @name)
  (template_type name: (type_identifier) @name)
]) @reference.implementation
(class_specifier name: (_) (base_class_clause
  [(type_identifier) (qualified_identifier) (template_type)] @supertype.extends))
(struct_specifier name: (_) (base_class_clause
  [(type_identifier) (qualified_identifier) (template_type)] @supertype.extends))
(call_expression function: [
  (identifier) @name
  (template_function name: (identifier) @name)
]) @reference.call
(call_expression function: (qualified_identifier
  scope: (_) @receiver
  name: [
    (identifier) @name
    (template_function name: (identifier) @name)
    (qualified_identifier name: (identifier) @name)
  ])) @reference.call
(call_expression function: (field_expression
  argument: (_) @receiver
  field: [
    (field_identifier) @name
    (template_method name: (field_identifier) @name)
  ])) @reference.call
(new_expression type: [
  (type_identifier) @name
  (qualified_identifier name: (type_identifier) @name)
  (template_type name: (type_identifier) @name)
]) @reference.call
(type_identifier) @name @reference.type
