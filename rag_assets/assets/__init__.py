"""The software-defined assets, one module each; they call the core and report metadata.

What belongs here: what Dagster shows for a stage. What does not: the work of the stage (see
`pipeline`).
"""
