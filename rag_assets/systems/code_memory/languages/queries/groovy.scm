(line_comment) @comment
(block_comment) @comment

((command (unit . (identifier) @_form) . (unit . (identifier) @name)) @definition.class
  (#any-of? @_form "class" "interface" "trait" "enum"))
((command (unit (identifier) @_form) . (block . (unit (func (identifier) @name)))) @definition.function
  (#not-match? @_form "^(return|new|if|while|for|throw|assert|else)$"))

((command . (unit . (identifier) @_form)) @reference.import (#eq? @_form "import"))
((command . (unit . (identifier) @_form) . (unit . (identifier) . (identifier) @name)) @reference.type
  (#eq? @_form "new"))
(unit . (func . (identifier) @name)) @reference.call
(unit (identifier) @receiver . (func . (identifier) @name)) @reference.call
(unit (func . (identifier) @receiver) . (func . (identifier) @name)) @reference.call
