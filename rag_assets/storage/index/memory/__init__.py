"""The adapter that keeps the index in memory and searches exactly.

For tests, and for experiments without a server: a query is compared with every entry, and nothing
outlives the process. Belongs here: the three protocols. Does not: features that the adapter for
Elasticsearch lacks.
"""
