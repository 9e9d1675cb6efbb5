"""Exclude samples of test frameworks from the collection of tests."""

collect_ignore = ["samples"]
