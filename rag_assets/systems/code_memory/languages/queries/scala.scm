(comment) @comment
(block_comment) @comment

(class_definition name: (identifier) @name) @definition.class
(trait_definition name: (identifier) @name) @definition.class
(object_definition name: (identifier) @name) @definition.class
(enum_definition name: (identifier) @name) @definition.class
(package_object name: (identifier) @name) @definition.module
(type_definition name: (type_identifier) @name) @definition.type
(function_definition name: (_) @name) @definition.function
(function_declaration name: (_) @name) @definition.signature
(template_body (val_definition pattern: (identifier) @name) @definition.constant)
(given_definition name: (identifier) @name) @definition.constant

(import_declaration) @reference.import
(extends_clause ["extends" "with"] . [
  (type_identifier) @name
  (generic_type type: (type_identifier) @name)
  (stable_type_identifier (type_identifier) @name)
]) @reference.implementation
(_ extend: (extends_clause "extends" . (_) @supertype.extends))
(_ extend: (extends_clause "with" . (_) @supertype.implements))
(call_expression function: [
  (identifier) @name
  (generic_function function: (identifier) @name)
]) @reference.call
(call_expression function: (field_expression value: (_) @receiver field: (identifier) @name)) @reference.call
(call_expression function: (generic_function
  function: (field_expression value: (_) @receiver field: (identifier) @name))) @reference.call
(infix_expression left: (_) @receiver operator: (identifier) @name) @reference.call
(instance_expression [(type_identifier) @name (generic_type type: (type_identifier) @name)]) @reference.call
(type_identifier) @name @reference.type
