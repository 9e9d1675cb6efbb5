"""Masking of credentials in short texts: names, addresses, questions and messages.

Belongs here: finding credentials (secrets), and masking all stored, logged or sent text other than
the texts of documents. Does not belong here: masking documents, which the parsers do (ingest).
"""
