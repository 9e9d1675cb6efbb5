"""Judged sentences about passages, and how many of them the check of citations judges rightly."""
