(line_comment) @comment
(block_comment) @comment

(class_declaration name: (identifier) @name) @definition.class
(interface_declaration name: (identifier) @name) @definition.class
(record_declaration name: (identifier) @name) @definition.class
(enum_declaration name: (identifier) @name) @definition.type
(annotation_type_declaration name: (identifier) @name) @definition.type
(method_declaration name: (identifier) @name) @definition.method
(constructor_declaration name: (identifier) @name) @definition.method
((field_declaration (modifiers "static" "final") (variable_declarator name: (identifier) @name)) @definition.constant)

(import_declaration) @reference.import
(superclass [(type_identifier) @name (generic_type . (type_identifier) @name)]) @reference.implementation
(type_list [(type_identifier) @name (generic_type . (type_identifier) @name)]) @reference.implementation
(method_invocation !object name: (identifier) @name) @reference.call
(method_invocation object: (_) @receiver name: (identifier) @name) @reference.call
(method_reference . (_) @receiver (identifier) @name .) @reference.call
(object_creation_expression type: [
  (type_identifier) @name
  (generic_type . (type_identifier) @name)
  (scoped_type_identifier (type_identifier) @name .)
]) @reference.call
(marker_annotation name: (identifier) @name) @reference.type
(annotation name: (identifier) @name) @reference.type
(type_identifier) @name @reference.type
