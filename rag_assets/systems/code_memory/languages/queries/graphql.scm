(comment) @comment

(object_type_definition (name) @name) @definition.class
(interface_type_definition (name) @name) @definition.class
(input_object_type_definition (name) @name) @definition.class
(enum_type_definition (name) @name) @definition.type
(union_type_definition (name) @name) @definition.type
(scalar_type_definition (name) @name) @definition.type
(directive_definition (name) @name) @definition.function
(operation_definition (operation_type) (name) @name) @definition.function
(fragment_definition (fragment_name (name) @name)) @definition.function

(implements_interfaces (named_type (name) @name)) @reference.implementation
(fragment_spread (fragment_name (name) @name)) @reference.call
(selection_set (selection (field (name) @name))) @reference.call
(directive (name) @name) @reference.type
(named_type (name) @name) @reference.type
