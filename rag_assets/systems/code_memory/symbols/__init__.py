"""Names of definitions: how languages write them, what they refer to, and their kinds."""
