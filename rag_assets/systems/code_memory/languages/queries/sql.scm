(comment) @comment
(marginalia) @comment

(create_table (object_reference name: (identifier) @name)) @definition.type
(create_view (object_reference name: (identifier) @name)) @definition.type
(create_function (object_reference name: (identifier) @name)) @definition.function
(create_type (object_reference name: (identifier) @name)) @definition.type

(relation (object_reference name: (identifier) @name)) @reference.type
(column_definition (object_reference name: (identifier) @name)) @reference.type
(invocation (object_reference name: (identifier) @name)) @reference.call
