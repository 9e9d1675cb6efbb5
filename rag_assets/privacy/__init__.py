"""Masking of credentials in names, addresses, questions and messages: many short texts.

Belongs here: finding credentials (secrets), and masking all stored, logged or sent text other than
the texts of documents. Does not: masking documents, which the parsers do (ingest).
"""
