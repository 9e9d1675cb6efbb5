"""Judged questions: how well a tenant's builds answer, and whether a new build answers worse.

Belongs here: judgements and their files, measures, evaluations, comparisons of two builds.
Does not belong here: searches (search), publishing (pipeline), Dagster (checks, jobs, assets).
"""
