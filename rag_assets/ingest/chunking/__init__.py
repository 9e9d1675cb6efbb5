"""ParsedText → chunks.

Belongs here: chunkers. Does not: parsing, embedding.
"""
