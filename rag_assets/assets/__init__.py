"""The software-defined assets, one module each: they call the core and report metadata.

The work of a stage belongs in `pipeline`.
"""
