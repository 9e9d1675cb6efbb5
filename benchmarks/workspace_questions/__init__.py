"""Judged questions to the example's workspace: rankings, chips, and a change of its model.

Belongs here: the installation that is asked, and what an answer is worth. Does not: the workspace
and its questions (examples/workspace), and the model that writes (benchmarks/extractive_writer).
"""
