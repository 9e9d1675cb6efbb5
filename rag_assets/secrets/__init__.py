"""Finding credentials in text, and masking them.

Belongs here: rules and scanners. Does not: what is done with a document that holds one.
May import: errors.
"""
