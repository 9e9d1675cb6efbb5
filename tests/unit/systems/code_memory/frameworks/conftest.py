"""Samples are data: those of test frameworks are not collected as tests of this project."""

collect_ignore = ["samples"]
