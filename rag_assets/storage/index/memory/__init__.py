"""The search index in the memory of one process, which searches exactly.

For tests, and for trying retrieval out without a server: a question is compared with every entry,
and all of it is gone with the process. Belongs here: nothing that Elasticsearch's adapter lacks.
"""
