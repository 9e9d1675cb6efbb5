(comment) @comment
(pod) @comment

(package_statement name: (package) @name) @definition.module
(subroutine_declaration_statement name: (bareword) @name) @definition.function

(use_statement) @reference.import
(require_expression) @reference.import
(function_call_expression function: (function) @name) @reference.call
(ambiguous_function_call_expression function: (function) @name) @reference.call
(method_call_expression invocant: (_) @receiver method: (method) @name) @reference.call
