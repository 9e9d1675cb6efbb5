"""The adapter that keeps the index in memory and searches exactly.

It is for tests, and for experiments without a server: a query is compared with every entry, and the
data ends with the process. Belongs here: the three protocols. Does not belong here: features that
the adapter for Elasticsearch lacks.
"""
