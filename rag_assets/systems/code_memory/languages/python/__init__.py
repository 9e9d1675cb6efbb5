"""Python: names, static expressions, definitions, the units and facts of a file, and programs.

tree-sitter is used instead of the standard `ast`, because it also reads files with errors, files
for other versions of Python, and deeply nested code.
"""
