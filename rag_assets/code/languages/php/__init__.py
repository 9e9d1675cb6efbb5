"""PHP: names, static values, chains of calls, classes; and a file's units and facts.

`source.PhpSource` is what frameworks read a file with.
"""
