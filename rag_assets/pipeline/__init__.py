"""The five stages of the pipeline: each compares its desired content with its present content.

Belongs here: one module per stage, the planning of a run's slice, generations, repair and pruning.
Does not: Dagster (assets wrap these functions), formats, models and servers.
"""
