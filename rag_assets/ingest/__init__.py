"""From a source's bytes to chunks: sources, parsing and chunking, in the order in which data flows.

Belongs here: reading documents and processing their text. Does not: stores, models, and the
decision which documents are due (pipeline).
"""
