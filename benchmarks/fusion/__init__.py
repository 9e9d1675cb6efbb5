"""Fusion of rankings on judged sets of many kinds and languages."""
