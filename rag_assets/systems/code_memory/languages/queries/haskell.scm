(comment) @comment
(haddock) @comment

(header module: (module) @name) @definition.module
(declarations (function name: (variable) @name) @definition.function)
(declarations (bind name: (variable) @name) @definition.function)
(class_declarations (signature name: (variable) @name) @definition.signature)
(class name: (name) @name) @definition.class
(data_type name: (name) @name) @definition.type
(newtype name: (name) @name) @definition.type
(type_synomym name: (name) @name) @definition.type
(data_constructor (record name: (constructor) @name)) @definition.signature
(data_constructor (prefix name: (constructor) @name)) @definition.signature

(import) @reference.import
(instance name: (name) @name) @reference.implementation
(apply function: [(variable) @name (constructor) @name]) @reference.call
(apply function: (qualified module: (module) @receiver id: (_) @name)) @reference.call
(infix operator: (operator) right_operand: (variable) @name) @reference.call
(signature type: (_ [(name) @name (apply (name) @name)])) @reference.type
(signature type: (name) @name) @reference.type
(apply constructor: (name) @name) @reference.type
(apply argument: (name) @name) @reference.type
(field type: (name) @name) @reference.type
(list element: (name) @name) @reference.type
