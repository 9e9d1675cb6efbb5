"""The five software-defined assets, one file each, thin: call the core, report metadata.

Belongs here: what Dagster shows of a stage. Does not: what the stage does (stages).
"""
