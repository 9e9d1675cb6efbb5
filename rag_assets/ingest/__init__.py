"""From a source's bytes to chunks: sources, parsing and chunking, in the order data flows.

Belongs here: what reads documents and works on their text. Does not: stores, models, and the
decision which documents are due (pipeline).
"""
