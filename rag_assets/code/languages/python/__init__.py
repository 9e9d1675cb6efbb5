"""Python: names, static expressions, definitions; and a file's units and facts.

tree-sitter reads it, not the standard `ast`: files with errors and of other versions of the
language keep their definitions, and no depth of nesting ends the reading.
"""
