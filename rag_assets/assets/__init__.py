"""The five software-defined assets, one module each: call the core and report metadata.

Belongs here: what Dagster shows of a stage. Does not: what the stage does (pipeline).
"""
