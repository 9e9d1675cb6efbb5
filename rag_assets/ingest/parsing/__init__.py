"""Parse the bytes of one document into a ParsedText.

Belongs here: parsers (a package for each family of formats), the detection of a document's type,
the workers in which documents are parsed, and their limits. Does not: reading bytes (sources),
finding credentials (privacy), cutting (chunking).
"""
