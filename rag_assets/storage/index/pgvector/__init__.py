"""Vectors of builds in Postgres, by the extension `vector`, beside those in Elasticsearch.

What belongs here: tables of one build, writing to them, searching them. Words and texts are
searched and read in Elasticsearch alone.
"""
