"""The same corpus through other frameworks, each in an environment of its own.

Each module here is one framework, used as its documentation recommends, and is run with its own
interpreter: `python -m benchmarks.rivals.NAME FOLDER STATE` brings an index in line with the
folder's Markdown files and prints what it cost. STATE is a folder for what it remembers.
"""
