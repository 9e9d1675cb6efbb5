"""A judged set of credentials in the places where people leave them, and what measures against it.

`tuning` holds the contexts that a scanner may be improved on; `held_out` those that are for the
verdict alone. Kinds of credentials occur in both, contexts and clean texts in one of them.
"""
