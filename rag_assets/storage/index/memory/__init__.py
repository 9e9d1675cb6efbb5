"""The adapter that keeps the index in memory and searches exactly.

For tests, and for experiments without a server: a query is compared with every entry, and the data
ends with the process. What belongs here: the three protocols. Elsewhere: features that the adapter
for Elasticsearch lacks.
"""
