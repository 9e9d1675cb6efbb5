"""The software-defined assets, one module each: call the core and report metadata.

Belongs here: what Dagster shows for a stage. Does not: the work of the stage (pipeline).
"""
