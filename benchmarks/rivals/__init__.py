"""The same corpus through other frameworks, each in its own environment.

Each module here uses one framework as its documentation recommends, and is run with that
framework's interpreter: `python -m benchmarks.rivals.NAME FOLDER STATE` updates an index from the
folder's Markdown files and prints the cost. STATE is a folder for the framework's own state.
"""
