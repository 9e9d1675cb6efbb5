(comment) @comment

(function_definition name: (word) @name) @definition.function
(program (declaration_command (variable_assignment name: (variable_name) @name)) @definition.constant)
(program (variable_assignment name: (variable_name) @name) @definition.constant)

((command name: (command_name (word) @_form)) @reference.import
  (#any-of? @_form "source" "."))
((command name: (command_name (word) @name)) @reference.call
  (#not-match? @name "^(source|[.])$"))
((simple_expansion (variable_name) @name) @reference.type
  (#not-match? @name "^[0-9]"))
((expansion (variable_name) @name) @reference.type
  (#not-match? @name "^[0-9]"))
