(comment) @comment

(class_declaration name: (_) @name) @definition.class
(class name: (_) @name) @definition.class
(function_declaration name: (identifier) @name) @definition.function
(generator_function_declaration name: (identifier) @name) @definition.function
(method_definition name: (property_identifier) @name) @definition.method
(variable_declarator name: (identifier) @name value: [(arrow_function) (function_expression)]) @definition.function
(assignment_expression
  left: (member_expression property: (property_identifier) @name)
  right: [(arrow_function) (function_expression)]) @definition.function
((program (lexical_declaration (variable_declarator name: (identifier) @name
  value: [(string) (number) (array) (object) (true) (false) (template_string)])) @definition.constant))
((program (export_statement (lexical_declaration (variable_declarator name: (identifier) @name
  value: [(string) (number) (array) (object) (true) (false) (template_string)])) @definition.constant)))

(import_statement) @reference.import
(export_statement source: (_)) @reference.import
((call_expression function: (identifier) @_form arguments: (arguments (string))) @reference.import
  (#eq? @_form "require"))
(class_heritage (identifier) @name) @reference.implementation
((call_expression function: (identifier) @name) @reference.call (#not-eq? @name "require"))
(call_expression function: (member_expression
  object: (_) @receiver property: (property_identifier) @name)) @reference.call
(new_expression constructor: [
  (identifier) @name
  (member_expression property: (property_identifier) @name)
]) @reference.call
(jsx_opening_element name: [(identifier) @name (member_expression property: (property_identifier) @name)]) @reference.call
(jsx_self_closing_element name: [(identifier) @name (member_expression property: (property_identifier) @name)]) @reference.call
(decorator [(identifier) @name (call_expression function: (identifier) @name)]) @reference.type
