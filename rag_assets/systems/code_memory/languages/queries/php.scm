(comment) @comment

(namespace_definition name: (namespace_name) @name) @definition.module
(class_declaration name: (name) @name) @definition.class
(interface_declaration name: (name) @name) @definition.class
(trait_declaration name: (name) @name) @definition.class
(enum_declaration name: (name) @name) @definition.class
(function_definition name: (name) @name) @definition.function
(method_declaration name: (name) @name) @definition.method
(const_declaration (const_element (name) @name)) @definition.constant

(namespace_use_declaration) @reference.import
(base_clause [(name) @name (qualified_name (name) @name)]) @reference.implementation
(class_interface_clause [(name) @name (qualified_name (name) @name)]) @reference.implementation
(declaration_list (use_declaration [(name) @name (qualified_name (name) @name)]) @reference.implementation)
(object_creation_expression [(name) @name (qualified_name (name) @name)]) @reference.call
(function_call_expression function: [(name) @name (qualified_name (name) @name)]) @reference.call
(scoped_call_expression scope: (_) @receiver name: (name) @name) @reference.call
(member_call_expression object: (_) @receiver name: (name) @name) @reference.call
(nullsafe_member_call_expression object: (_) @receiver name: (name) @name) @reference.call
(class_constant_access_expression . [(name) @name (qualified_name (name) @name)]) @reference.type
(scoped_call_expression scope: [(name) @name (qualified_name (name) @name)]) @reference.type
(named_type [(name) @name (qualified_name (name) @name)]) @reference.type
(attribute [(name) @name (qualified_name (name) @name)]) @reference.type
