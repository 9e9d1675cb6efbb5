"""Definitions that code memory reads from real code, compared with a compiler's or a judge's.

Belongs here: exports of TypeScript and JavaScript from TypeScript's own compiler (`exports.mjs`),
and types and functions of a Swift project, listed by hand (`swift.yaml`). Not here: Python, which
tests/unit/systems/code_memory/languages/python/test_truth.py compares with `ast`.
"""
