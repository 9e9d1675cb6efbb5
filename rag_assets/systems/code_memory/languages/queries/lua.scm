(comment) @comment

(function_declaration name: [
  (identifier) @name
  (dot_index_expression) @name
  (method_index_expression) @name
]) @definition.function
(assignment_statement
  (variable_list . name: [(identifier) @name (dot_index_expression) @name])
  (expression_list . value: (function_definition))) @definition.function
(chunk local_declaration: (variable_declaration (assignment_statement
  (variable_list . name: (identifier) @name)
  (expression_list . value: (table_constructor)))) @definition.class)
(chunk local_declaration: (variable_declaration (assignment_statement
  (variable_list . name: (identifier) @name)
  (expression_list . value: [(string) (number)]))) @definition.constant)

((function_call name: (identifier) @_form arguments: (arguments (string))) @reference.import
  (#eq? @_form "require"))
((function_call name: (identifier) @name) @reference.call (#not-eq? @name "require"))
(function_call name: (dot_index_expression
  table: (_) @receiver field: (identifier) @name)) @reference.call
(function_call name: (method_index_expression
  table: (_) @receiver method: (identifier) @name)) @reference.call
