"""A judged set of credentials in the contexts where people leave them, and its measurement.

A scanner may be improved on the half `tuning`; `held_out` is only for the verdict. Both halves have
all kinds of credentials, but no context or clean text in common.
"""
