"""Cut a ParsedText into chunks.

Belongs here: chunkers. Does not: parsing, embedding.
"""
