"""Parse the bytes of one document into a ParsedText.

Belongs here: parsers (a module for each format), the detection of a document's type, and the limits
of parsing. Does not: reading bytes (sources), finding credentials (privacy), cutting (chunking).
"""
