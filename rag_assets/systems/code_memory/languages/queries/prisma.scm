(comment) @comment

(model_block (identifier) @name) @definition.class
(enum_block . (identifier) @name) @definition.type
(key_value_block (identifier) @name) @definition.constant

(field_type (_ (identifier) @name)) @reference.type
(field_type (array_type (_ (identifier) @name))) @reference.type
(apply_function name: (identifier) @name) @reference.call

(document_comment) @comment
