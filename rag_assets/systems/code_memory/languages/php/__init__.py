"""PHP: names, static values, chains of calls and classes; and the units and facts of a file.

Frameworks read a file with `source.PhpSource`.
"""
