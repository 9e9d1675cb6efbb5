"""Documentation of command-line agents, indexed and searched on one machine without a server.

Belongs here: agents.yaml, its layers and variables, globs, what goes into a prompt, the index of an
agent and its tool. Does not: stores of passages (indexing), parsers and chunkers (ingest), agents
as tenants (tenants).
"""
