(comment) @comment

(package (full_ident) @name) @definition.module
(message (message_name (identifier) @name)) @definition.class
(enum (enum_name (identifier) @name)) @definition.type
(service (service_name (identifier) @name)) @definition.class
(rpc (rpc_name (identifier) @name)) @definition.method

(import) @reference.import
(message_or_enum_type (identifier) @name .) @reference.type
