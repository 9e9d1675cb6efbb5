(line_comment) @comment
(doc_comment) @comment
(container_doc_comment) @comment

(Decl (VarDecl variable_type_function: (IDENTIFIER) @name
  (ErrorUnionExpr (SuffixExpr (ContainerDecl))))) @definition.class
(Decl (FnProto function: (IDENTIFIER) @name)) @definition.function
(source_file (Decl (VarDecl variable_type_function: (IDENTIFIER) @name
  (ErrorUnionExpr (SuffixExpr [(INTEGER) (FLOAT) (STRINGLITERALSINGLE)])))) @definition.constant)

((SuffixExpr (BUILTINIDENTIFIER) @_form (FnCallArguments) @reference.import) (#eq? @_form "@import"))
(SuffixExpr variable_type_function: (IDENTIFIER) @name . (FnCallArguments)) @reference.call
(SuffixExpr
  variable_type_function: (IDENTIFIER) @receiver
  . (FieldOrFnCall function_call: (IDENTIFIER) @name)) @reference.call
(SuffixExpr
  (FieldOrFnCall [field_access: (IDENTIFIER) @receiver function_call: (IDENTIFIER) @receiver])
  . (FieldOrFnCall function_call: (IDENTIFIER) @name)) @reference.call
(ParamType (ErrorUnionExpr (SuffixExpr variable_type_function: (IDENTIFIER) @name))) @reference.type
(ParamType (PrefixTypeOp) (ErrorUnionExpr (SuffixExpr variable_type_function: (IDENTIFIER) @name))) @reference.type
(FnProto (ErrorUnionExpr (SuffixExpr variable_type_function: (IDENTIFIER) @name))) @reference.type
