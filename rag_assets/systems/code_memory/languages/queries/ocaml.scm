(comment) @comment

(compilation_unit (value_definition (let_binding pattern: (value_name) @name)) @definition.function)
(structure (value_definition (let_binding pattern: (value_name) @name)) @definition.function)
(external (value_name) @name) @definition.function
(value_specification (value_name) @name) @definition.signature
(type_definition (type_binding name: (type_constructor) @name)) @definition.type
(module_definition (module_binding (module_name) @name)) @definition.module
(module_type_definition (module_type_name) @name) @definition.class
(class_definition (class_binding (class_name) @name)) @definition.class
(method_definition (method_name) @name) @definition.method
(exception_definition (constructor_declaration (constructor_name) @name)) @definition.type

(open_module) @reference.import
(inheritance_definition class: (class_path (class_name) @name)) @reference.implementation
(application_expression function: (value_path . (value_name) @name)) @reference.call
(application_expression function: (value_path
  . (module_path) @receiver (value_name) @name)) @reference.call
(method_invocation . (_) @receiver (method_name) @name) @reference.call
(new_expression (class_path (class_name) @name)) @reference.call
(type_constructor_path (type_constructor) @name) @reference.type
