"""Definitions of real code as they are read here, beside its compiler's or a judge's.

Belongs here: exports of TypeScript and JavaScript by TypeScript's own compiler (`exports.mjs`),
types and functions of a Swift project as they were listed by hand (`swift.yaml`). Does not: Python,
which tests/unit/systems/code_memory/languages/python/test_truth.py compares with `ast`.
"""
