"""Vectors of builds in Postgres, with the extension `vector`, in addition to Elasticsearch.

What belongs here: tables of one build, writing to them, searching them. Words and texts are only
searched and read in Elasticsearch.
"""
