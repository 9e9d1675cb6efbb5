"""Finding credentials in text, and masking them.

Belongs here: rules, scanners, ways to read a text. Does not: what is done with a document that
holds one.
"""
