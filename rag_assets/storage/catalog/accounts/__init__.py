"""Access and spending: grants, provider keys, tokens, sessions, and usage of providers."""
