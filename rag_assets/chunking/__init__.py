"""ParsedText → chunks.

Belongs here: chunkers and the counting of tokens. Does not: parsing, embedding.
May import: errors, hashing, parsing.model.
"""
