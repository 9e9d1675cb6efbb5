"""Who may do what, and at whose expense: grants, keys, tokens, sessions and usage."""
