"""Judged questions: how well the builds of a tenant answer, and whether one is worse.

Belongs here: judgements and their files, measures, evaluations, comparisons of two builds. Does
not: searching (retrieval), publishing (pipeline), Dagster (checks, jobs, assets).
"""
