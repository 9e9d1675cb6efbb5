"""Names of definitions: their spellings, their resolution by path, and their source types."""
