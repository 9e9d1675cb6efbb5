"""Judged questions to the example's workspace: rankings, chips, and a change of its model.

Belongs here: the installation that is searched, and the measures of answers. Not here: the
workspace and its questions (examples/workspace), and the chat model (benchmarks/extractive_writer).
"""
