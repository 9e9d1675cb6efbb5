(comment) @comment

(class_statement (simple_name) @name) @definition.class
(enum_statement (simple_name) @name) @definition.type
(class_method_definition (simple_name) @name) @definition.method
(function_statement (function_name) @name) @definition.function

((command command_name: (command_name) @_form) @reference.import (#any-of? @_form "using" "Import-Module"))
((command command_name: (command_name) @name) @reference.call (#not-match? @name "^(using|Import-Module)$"))
(invokation_expression . (_) @receiver (member_name (simple_name) @name)) @reference.call
(type_identifier) @name @reference.type
