"""PHP: names, static values, chains of calls, classes; and a file's units and facts.

Frameworks read a file with `source.PhpSource`.
"""
