"""Masking of credentials in names, addresses, questions and messages: many short texts.

Belongs here: finding credentials (secrets), masking whatever is stored, logged or sent beside the
texts of documents. Does not: masking documents, which the parsers do (ingest).
"""
