"""Pushed records: their rules, the drafts made from them, and their writes; without HTTP."""
