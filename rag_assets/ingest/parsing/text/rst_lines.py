"""Lines of reStructuredText, and the recognition of blocks by a single line.

As for Markdown, each function scans a line only a few times.
"""

from __future__ import annotations

import re

_PUNCTUATION = frozenset("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~")
_LEAST_ADORNMENT = 2
_LEAST_TRANSITION = 4
_LIST_ITEM = re.compile(
    r"(?:[-*+•‣⁃]|\(?(?:[0-9]{1,9}|#|[A-Za-z]|[ivxlcdmIVXLCDM]{1,5})[.)])(?![^ \t])"
)
_FIELD = re.compile(r":(?![: ])[^:\n]{1,200}:(?![^ \t])")
_DIRECTIVE = re.compile(
    r"\.\.[ \t]+(?:\|[^|]{1,100}\|[ \t]+)?([A-Za-z][\w.+:-]{0,60}?)::(?![^ \t])"
)
_EXPLICIT = re.compile(r"\.\.(?![^ \t])")
_VISIBLE = re.compile(r"\.\.[ \t]+\[")  # such as footnotes and citations
_SIMPLE_TABLE = re.compile(r"=+(?:[ \t]+=+)+[ \t]*$")
_GRID_TABLE = ("+-", "+=")

CODE = frozenset(
    {"code", "code-block", "sourcecode", "parsed-literal", "literalinclude", "math", "raw",
     "doctest", "testcode", "testoutput", "highlight-block", "prompt", "graphviz", "mermaid"}
)  # fmt: skip
"""Directives whose content is not running text."""
TABLES = frozenset({"table", "csv-table", "list-table"})
"""Directives that create a table."""
FOR_PROGRAMS = frozenset(
    {"toctree", "contents", "index", "highlight", "meta", "currentmodule", "module", "include",
     "default-role", "role", "sectnum", "tabularcolumns", "testsetup", "testcleanup",
     "target-notes", "codeauthor", "sectionauthor"}
)  # fmt: skip
"""Directives without content for readers."""


def indent_of(line: str) -> int:
    """Return the number of leading white-space characters; a tab counts as one."""
    return len(line) - len(line.lstrip())


def is_adornment(line: str) -> bool:
    """Return whether a line repeats one punctuation character, like lines around titles."""
    text = line.rstrip()
    return len(text) >= _LEAST_ADORNMENT and text[0] in _PUNCTUATION and not text.strip(text[0])


def is_transition(line: str) -> bool:
    """Return whether an adornment is long enough to separate sections that have no title."""
    return len(line.rstrip()) >= _LEAST_TRANSITION and is_adornment(line)


def is_list_item(line: str) -> bool:
    """Return whether a line starts an item of a bulleted, numbered or field list."""
    return _LIST_ITEM.match(line) is not None or _FIELD.match(line) is not None


def is_explicit(line: str) -> bool:
    """Return whether a line starts a directive, a comment, a target or a footnote."""
    return _EXPLICIT.match(line) is not None


def is_for_readers(line: str) -> bool:
    """Return whether readers see a block that starts with `..`."""
    name = directive(line)
    return name not in FOR_PROGRAMS if name else _VISIBLE.match(line) is not None


def directive(line: str) -> str | None:
    """Return the name of the directive that a line starts; None if it starts no directive."""
    found = _DIRECTIVE.match(line)
    return found[1].lower() if found else None


def is_simple_border(line: str) -> bool:
    """Return whether a line is a border of a simple table, such as `=====  ===`."""
    return _SIMPLE_TABLE.match(line) is not None


def is_grid_border(line: str) -> bool:
    """Return whether a line is a border of a grid table, such as `+-----+---+`."""
    return line.startswith(_GRID_TABLE) and not line.rstrip().strip("+-=")
