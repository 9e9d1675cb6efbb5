"""Pushed records: their rules, their conversion to drafts, and their storage.

HTTP is handled elsewhere (api).
"""
