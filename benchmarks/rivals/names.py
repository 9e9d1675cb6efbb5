"""Names that both sides use: frameworks' environments lack what the others' modules import."""

INDEX = "rival"
"""The index or table that each framework fills, after the former's was dropped."""
