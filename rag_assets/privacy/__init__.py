"""Credentials kept out of names, addresses, questions and messages: short texts, many at once.

Belongs here: masking what is stored, logged or sent beside the texts of documents. Does not:
finding credentials (secrets), and documents' own texts, which are masked as they are parsed.
"""
