(comment) @comment

(value_specification (value_name) @name) @definition.function
(external (value_name) @name) @definition.function
(type_definition (type_binding name: (type_constructor) @name)) @definition.type
(module_definition (module_binding (module_name) @name)) @definition.module
(module_type_definition (module_type_name) @name) @definition.class
(class_definition (class_binding (class_name) @name)) @definition.class
(exception_definition (constructor_declaration (constructor_name) @name)) @definition.type

(open_module) @reference.import
(type_constructor_path (type_constructor) @name) @reference.type
