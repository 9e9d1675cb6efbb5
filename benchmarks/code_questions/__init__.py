"""Questions to a real Laravel application, and the recall of code memory and others on them.

Belongs here: the questions with the locations that answer them, the recall of passages, and the
variants of retrieval that are compared. Not here: other programs (benchmarks/rivals).
"""
