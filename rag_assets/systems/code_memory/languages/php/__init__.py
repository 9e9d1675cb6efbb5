"""PHP: names, static values, chains of calls, classes, and the units and facts of a file.

Frameworks read a file with `source.PhpSource`.
"""
