(comment) @comment

(class_declaration name: (_) @name) @definition.class
(abstract_class_declaration name: (type_identifier) @name) @definition.class
(interface_declaration name: (type_identifier) @name) @definition.class
(enum_declaration name: (identifier) @name) @definition.type
(type_alias_declaration name: (type_identifier) @name) @definition.type
(internal_module name: (_) @name) @definition.module
(module name: (identifier) @name) @definition.module
(function_declaration name: (identifier) @name) @definition.function
(function_signature name: (identifier) @name) @definition.function
(generator_function_declaration name: (identifier) @name) @definition.function
(method_definition name: (property_identifier) @name) @definition.method
(method_signature name: (property_identifier) @name) @definition.signature
(abstract_method_signature name: (property_identifier) @name) @definition.signature
(variable_declarator name: (identifier) @name value: [(arrow_function) (function_expression)]) @definition.function
((program (lexical_declaration (variable_declarator name: (identifier) @name
  value: [(string) (number) (array) (object) (true) (false) (template_string) (as_expression)])) @definition.constant))
((program (export_statement (lexical_declaration (variable_declarator name: (identifier) @name
  value: [(string) (number) (array) (object) (true) (false) (template_string) (as_expression)])) @definition.constant)))

(import_statement) @reference.import
(export_statement source: (_)) @reference.import
((call_expression function: (identifier) @_form arguments: (arguments (string))) @reference.import
  (#eq? @_form "require"))
(extends_clause value: [(identifier) @name (member_expression property: (property_identifier) @name)]) @reference.implementation
(implements_clause [(type_identifier) @name (generic_type name: (type_identifier) @name)]) @reference.implementation
(extends_type_clause [(type_identifier) @name (generic_type name: (type_identifier) @name)]) @reference.implementation
((call_expression function: (identifier) @name) @reference.call (#not-eq? @name "require"))
(call_expression function: (member_expression
  object: (_) @receiver property: (property_identifier) @name)) @reference.call
(new_expression constructor: [
  (identifier) @name
  (member_expression property: (property_identifier) @name)
]) @reference.call
(decorator [(identifier) @name (call_expression function: (identifier) @name)]) @reference.type
(type_identifier) @name @reference.type
