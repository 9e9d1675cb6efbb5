(comment) @comment

((body (block . (identifier) @_form . (string_lit (template_literal) @name)) @definition.constant)
  (#any-of? @_form "variable" "output" "provider"))
((body (block . (identifier) @_form . (string_lit (template_literal) @name)) @definition.module)
  (#eq? @_form "module"))
((body (block . (identifier) @_form . (string_lit (template_literal) @owner) . (string_lit (template_literal) @name))
  @definition.type)
  (#any-of? @_form "resource" "data"))
((block . (identifier) @_form (body (attribute . (identifier) @name) @definition.constant))
  (#eq? @_form "locals"))

((block . (identifier) @_form (body (attribute . (identifier) @_source (expression) @reference.import)))
  (#eq? @_form "module") (#eq? @_source "source"))
((expression . (variable_expr (identifier) @receiver) . (get_attr (identifier) @name)) @reference.type)
(function_call (identifier) @name) @reference.call
