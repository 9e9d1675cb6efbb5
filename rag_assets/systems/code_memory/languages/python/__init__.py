"""Python: names, static expressions, definitions; and a file's units and facts.

tree-sitter is used instead of the standard `ast`: files with errors or in other versions of the
language keep their definitions, and deep nesting does not stop the reader.
"""
