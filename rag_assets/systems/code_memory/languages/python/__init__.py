"""Python: names, static expressions and definitions; the units and facts of a file; programs.

tree-sitter is used instead of the standard `ast`. So files with errors, or for other versions of
Python, keep their definitions, and deep nesting does not stop the reader.
"""
