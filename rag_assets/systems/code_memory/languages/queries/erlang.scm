(comment) @comment

(module_attribute name: (atom) @name) @definition.module
(fun_decl clause: (function_clause name: (atom) @name)) @definition.function
(record_decl name: (atom) @name) @definition.class
(type_alias name: (type_name name: (atom) @name)) @definition.type
(pp_define lhs: (macro_lhs name: (_) @name)) @definition.constant

(behaviour_attribute name: (atom) @name) @reference.implementation
(pp_include) @reference.import
(pp_include_lib) @reference.import
(import_attribute) @reference.import
(call expr: (atom) @name) @reference.call
(call expr: (remote module: (remote_module module: (_) @receiver) fun: (atom) @name)) @reference.call
(record_expr name: (record_name name: (atom) @name)) @reference.type
(macro_call_expr name: (_) @name) @reference.type
