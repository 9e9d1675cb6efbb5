"""The five stages of the pipeline: each brings its stored content in line with its desired content.

Belongs here: one module per stage, the planning of a run's slice, generations, repair and pruning.
Does not belong here: Dagster (assets wrap these functions), formats, models and servers.
"""
