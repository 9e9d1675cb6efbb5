"""Questions to a real Laravel application, and how well code memory and others answer them.

Belongs here: the questions with the places that answer them, what a found passage is worth, and
the variants of the retrieval that are compared. Does not: other programs (benchmarks/rivals).
"""
