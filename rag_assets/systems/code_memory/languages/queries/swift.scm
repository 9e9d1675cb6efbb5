(comment) @comment
(multiline_comment) @comment

(class_declaration name: (type_identifier) @name) @definition.class
(class_declaration "extension" name: (user_type (type_identifier) @name)) @scope
(protocol_declaration name: (type_identifier) @name) @definition.class
(typealias_declaration name: (type_identifier) @name) @definition.type
(function_declaration name: (simple_identifier) @name) @definition.function
(protocol_function_declaration name: (simple_identifier) @name) @definition.signature
(source_file (property_declaration name: (pattern bound_identifier: (simple_identifier) @name)) @definition.constant)

(import_declaration) @reference.import
(inheritance_specifier inherits_from: (user_type (type_identifier) @name)) @reference.implementation
(call_expression . (simple_identifier) @name) @reference.call
(call_expression . (navigation_expression
  target: (_) @receiver
  suffix: (navigation_suffix suffix: (simple_identifier) @name))) @reference.call
(attribute (user_type (type_identifier) @name)) @reference.type
(user_type (type_identifier) @name) @reference.type
