"""Vectors of builds in Postgres, with the extension `vector`, in addition to Elasticsearch.

Belongs here: the tables of one build, writing to them, searching them. Words and texts are searched
and read only in Elasticsearch.
"""
