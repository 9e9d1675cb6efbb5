"""Bytes of one document → ParsedText.

Belongs here: parsers, the detection of a document's type, the limits a parser runs under.
Does not: where bytes come from (sources), what is a secret (secrets), splitting (chunking).
May import: errors, hashing, secrets.
"""
