"""Bytes of one document → ParsedText.

Belongs here: parsers (a package for each family of formats), the detection of a document's type,
the workers in which documents are parsed, and the limits they run under.
Does not: where bytes come from (sources), what is a secret (secrets), splitting (chunking).
"""
