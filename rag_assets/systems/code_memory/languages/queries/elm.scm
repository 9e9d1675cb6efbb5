(line_comment) @comment
(block_comment) @comment

(module_declaration name: (upper_case_qid) @name) @definition.module
(value_declaration (function_declaration_left . (lower_case_identifier) @name)) @definition.function
(type_declaration name: (upper_case_identifier) @name) @definition.type
(type_alias_declaration name: (upper_case_identifier) @name) @definition.type
(port_annotation name: (lower_case_identifier) @name) @definition.function
(union_variant name: (upper_case_identifier) @name) @definition.signature

(import_clause) @reference.import
(function_call_expr target: (value_expr name: (value_qid . (lower_case_identifier) @name .))) @reference.call
(function_call_expr target: (value_expr
  name: (value_qid (upper_case_identifier) @receiver (lower_case_identifier) @name .))) @reference.call
(type_ref (upper_case_qid (upper_case_identifier) @name .)) @reference.type
(union_pattern constructor: (upper_case_qid (upper_case_identifier) @name .)) @reference.type
