"""The names of a repository in a question, and whether it asks for anything besides relations."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from rag_assets.code.relations import TABLE
from rag_assets.code.source_types import SourceType

MOST_NAMES = 12

_METHOD: Final = r"(?:GET|HEAD|POST|PUT|PATCH|DELETE|OPTIONS)"
_PATTERNS: Final = (
    # A request: POST /invoices/{invoice}.
    rf"\b{_METHOD}\s+/[^\s`'\"?,;]*",
    # A file: app/Models/Invoice.php.
    r"(?<![\w/])(?:[\w.@-]+/)+[\w@-]+\.\w{1,8}\b",
    # A path: /invoices/{invoice}/edit.
    r"(?<![\w/<.])/[\w{}<>:.-]+(?:/[\w{}<>:.*-]+)*",
    # Qualified with a method: Invoice@total, App\Models\Invoice::total, billing.models.Invoice.
    r"\\?[A-Za-z_]\w*(?:\\[A-Za-z_]\w*)*(?:@|::|->)[A-Za-z_]\w*",
    r"\\?[A-Za-z_]\w*(?:\\[A-Za-z_]\w*)+",
    # With dots: invoices.store, billing.models.Invoice.
    r"(?<![\w.])[A-Za-z_][\w-]*(?:\.[A-Za-z_][\w-]*)+(?![\w.]*\()",
    # InvoiceController, sendReminder, invoice_lines.
    r"\b[A-Z]+[a-z0-9]+(?:[A-Z][a-z0-9]*)+\b|\b[a-z]+(?:[A-Z][a-z0-9]+)+\b|\b[a-z0-9]+(?:_[a-z0-9]+)+\b",
    # Whatever is marked as a name.
    r"`[^`\s]{1,200}`|\"[\w.\\:@/{}-]{1,200}\"|'[\w.\\:@/{}-]{1,200}'",
)
_NAME: Final = re.compile("|".join(f"(?:{one})" for one in _PATTERNS))
_TYPED: Final = re.compile(
    r"\b(?P<before>table|tables|model|class|controller|route|job|event|listener|policy|middleware"
    r"|service|command)\s+(?:named\s+|called\s+)?(?P<name>[A-Za-z_][\w-]*)\b"
)
_TYPED_AFTER: Final = re.compile(
    r"\b(?:the\s+)?(?P<name>[A-Za-z_][\w-]*)\s+(?P<after>table|model|class|controller|route)\b"
)
_GAP: Final = " \0 "
_SAYS_TYPE: Final = re.compile(
    r"\b(?:table|route|class|controller|model)s?\s+\0|\0\s+(?:table|route|class|controller|model)\b"
)
"""A type that says what a name is, and asks for nothing."""

_QUOTES: Final = "`\"'"
_WORD: Final = re.compile(r"[A-Za-z]+")

_WANTED: Final[Mapping[str, tuple[SourceType, ...]]] = MappingProxyType(
    {
        "controller": ("controller_method", "controller"),
        "route": ("route",),
        "endpoint": ("route", "api_endpoint"),
        "url": ("route",),
        "model": ("model", "model_relation"),
        "relation": ("model_relation",),
        "table": ("table",),
        "column": ("table", "migration"),
        "migration": ("migration",),
        "job": ("job",),
        "event": ("event",),
        "listener": ("listener",),
        "policy": ("policy",),
        "policies": ("policy",),
        "middleware": ("middleware",),
        "request": ("request",),
        "resource": ("resource",),
        "service": ("service",),
        "run": ("file_change", "run_summary"),
        "bug": ("known_bug",),
        "decision": ("adr",),
        "rule": ("cursor_rule", "claude_rule"),
        "package": ("package",),
        "config": ("config",),
    }
)
"""The source types that words ask for; words are taken without the `s` of a plural."""

_RELATIONAL: Final = frozenset(
    _WORD.findall(
        """
    a about add added agent all also alter altered always an and answer any are at back be been
    before behind being belong below by call called change changed class code column create
    created decide decided define defined delete deleted depend dependent did dispatch
    dispatched do doe done drop dropped each earlier else end every exist extend file find fire
    fired follow for former from function get give go guard guarded had handle handled has have
    her hi how i implement import in into is it its itself last lead list listen made make map
    mapped me method migrate more my name named no object of on one or other our out past point
    previou previous query reach read recent refer rename renamed respond return returned rename
    s same see serve served session show side so start store stored take tell test than that the
    their them then there these they thi this those through to touch touched up use used
    validate validated via wa was way we were what when where which who whose why will with work
    write written you
        """
    )
)
"""Words of questions about relations, without the `s` of a plural."""


@dataclass(frozen=True, slots=True)
class AskedNames:
    """What a question names.

    Attributes:
        names: as they were written, in order.
        wanted: source types that its words ask for.
        relational: whether it has no words but names and those of relations.
    """

    names: tuple[str, ...]
    wanted: frozenset[str]
    relational: bool


def asked_names(
    query: str,
    *,
    route_name: str | None = None,
    controller_class: str | None = None,
    table_name: str | None = None,
) -> AskedNames:
    """The names in a question, those given beside it first.

    Args:
        query: the question.
        route_name, controller_class, table_name: given beside it.
    """
    given = [one for one in (route_name, controller_class) if one]
    given += [TABLE + table_name.removeprefix(TABLE)] if table_name else []
    found = list(_found(query))
    rest = query
    for name in found:
        rest = rest.replace(name, _GAP)
    rest = _SAYS_TYPE.sub(" ", rest)
    words = [_singular(word.lower()) for word in _WORD.findall(rest)]
    wanted = {kind for word in words for kind in _WANTED.get(word, ())}
    shown = [one.strip(_QUOTES) for one in found]
    names = tuple(dict.fromkeys([*given, *filter(None, shown)]))[:MOST_NAMES]
    plain = all(word in _RELATIONAL or word in _WANTED for word in words)
    return AskedNames(names, frozenset(wanted), bool(names) and plain)


def _found(query: str) -> Iterator[str]:
    """Names in a question as they stand there."""
    for one in _NAME.finditer(query):
        yield one.group().rstrip(".:,;")
    rest = _NAME.sub(" ", query)
    for pattern in (_TYPED, _TYPED_AFTER):
        for one in pattern.finditer(rest):
            if _singular(one["name"].lower()) not in _RELATIONAL | _WANTED.keys():
                yield one["name"]


def _singular(word: str) -> str:
    return word.removesuffix("s") if len(word) > 1 else word
