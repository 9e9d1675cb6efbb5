"""The five stages of the chain: what each should hold, what it does hold, and the difference.

Belongs here: one module per stage, the planning of a run's slice, generations, repair and
pruning. Does not: Dagster (assets wrap these functions), any format, model or server by itself.
"""
