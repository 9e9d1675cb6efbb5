(comment) @comment
(documentation_comment) @comment

(class_definition name: (identifier) @name) @definition.class
(mixin_declaration (identifier) @name) @definition.class
(extension_declaration name: (identifier) @name) @definition.class
(enum_declaration name: (identifier) @name) @definition.type
(type_alias (type_identifier) @name) @definition.type
(static_final_declaration (identifier) @name) @definition.constant
((method_signature (function_signature name: (identifier) @name)) @definition.method . (function_body) @end)
((method_signature (getter_signature name: (identifier) @name)) @definition.method . (function_body) @end)
(declaration (function_signature name: (identifier) @name)) @definition.signature
(program (function_signature name: (identifier) @name) @definition.function . (function_body) @end)

(import_or_export) @reference.import
(superclass (type_identifier) @name) @reference.implementation
(interfaces (type_identifier) @name) @reference.implementation
(mixins (type_identifier) @name) @reference.implementation
(class_definition superclass: (superclass (type_identifier) @supertype.extends))
(_ (superclass (mixins (type_identifier) @supertype.uses_trait)))
(_ (interfaces (type_identifier) @supertype.implements))
(enum_declaration (mixins (type_identifier) @supertype.uses_trait))
((identifier) @name . (selector (argument_part))) @reference.call
((_) @receiver
  . (selector (unconditional_assignable_selector (identifier) @name))
  . (selector (argument_part))) @reference.call
((_) @receiver
  . (selector (conditional_assignable_selector (identifier) @name))
  . (selector (argument_part))) @reference.call
(annotation name: (identifier) @name) @reference.type
(type_identifier) @name @reference.type
