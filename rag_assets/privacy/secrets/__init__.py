"""Finding credentials in text, and masking them.

Belongs here: rules, scanners, views of a text. Does not belong here: the handling of documents that
contain credentials.
"""
