"""Names that both sides use: frameworks' environments lack what the others' modules import."""

INDEX = "rival"
"""The index or table that each framework fills; it is dropped before the next one."""
