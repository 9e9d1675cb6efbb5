"""ParsedText → chunks.

Belongs here: chunkers. Does not: parsing, embedding.
May import: errors, hashing, tokens, parsing.model, parsing.languages.
"""
