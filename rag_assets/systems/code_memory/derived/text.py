"""The text of a derived document: a description, then the file lines that support it.

Only the description before EVIDENCE is embedded. If a line only moves in its file, no new embedding
is needed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any, Final, get_args
from urllib.parse import unquote

from rag_assets.ingest.chunking.model import EVIDENCE, Fact
from rag_assets.systems.code_memory.derived.model import DESCRIBED, DerivedDocument, Statement
from rag_assets.systems.code_memory.relations.relations import How
from rag_assets.systems.code_memory.symbols.model import CodeText, Unit
from rag_assets.systems.code_memory.symbols.names import (
    FILE,
    TABLE,
    described_route_keys,
    list_keys,
    route_keys,
)

_SPECIAL: Final = re.compile(r"[\s%\x00-\x1f\x7f]")
_PLACE: Final = re.compile(r"(?P<path>\S+):(?P<first>\d+)(?:-(?P<last>\d+))?(?: (?P<evidence>.*))?")
_SAID: Final = re.compile(
    r"  (?:(?P<source>\S+) )?(?P<kind>[a-z_]+) (?P<target>\S+?)(?: \((?P<how>\w+)\))?"
)
_HEADING: Final = re.compile(r"(?P<type>route|table) (?P<name>.+)")
_METHODS: Final = "methods: "
_NAME: Final = "name: "
_HOWS: Final = frozenset(get_args(How))
_STATED: Final = "stated"
INDEX: Final = "scip "
"""Start of the text of a SCIP index, see derived.scip."""
REFERENCES: Final = "references "
"""Start of the heading of a document with the references of one file; the file's URI follows."""


def render_document(document: DerivedDocument) -> str:
    """Return the text of a derived document."""
    return (
        "\n".join(document.lines)
        + EVIDENCE
        + "\n".join(_render_statements(document.statements))
        + "\n"
    )


def read(text: str) -> CodeText:
    """Return the single unit of a derived document's text, and its statements.

    References and SCIP indexes have no unit, because they are not embedded.
    """
    first = text.partition("\n")[0]
    if first.startswith(INDEX):
        return CodeText((), (), "derived")
    if first.startswith(REFERENCES):
        name = FILE + first.removeprefix(REFERENCES)
        return CodeText((), tuple(_statements(text, name)), "derived")
    heading = _HEADING.fullmatch(first)
    if heading is None:
        unit = Unit(0, len(text.rstrip()), "rest", alone=False)
        return CodeText((unit,), (), "derived", ("it has no heading",))
    prefix = "route:" if heading["type"] == "route" else TABLE
    name = prefix + heading["name"]
    end = len(text.rstrip())
    cuts = tuple(found.end() for found in re.finditer("\n", text[:end]))
    values = {"role": heading["type"], "public": True, "called": list(_read_keys(heading, text))}
    facts = [Fact("declares", 0, heading.end(), name, values), *_statements(text, name)]
    unit = Unit(0, end, "derived", name, heading.group(), cuts=cuts)
    return CodeText((unit,), tuple(facts), "derived")


def _read_keys(heading: re.Match[str], text: str) -> tuple[str, ...]:
    if heading["type"] == "table":
        return list_keys(f"table:{heading['name']}")[1:]
    lines = text.partition(EVIDENCE)[0].split("\n")
    methods = next((ln.removeprefix(_METHODS) for ln in lines if ln.startswith(_METHODS)), "")
    name = next((ln.removeprefix(_NAME) for ln in lines if ln.startswith(_NAME)), "")
    _, _, uri = heading["name"].partition(" ")
    path = uri[uri.find("/") :]
    make_keys = described_route_keys if DESCRIBED in lines else route_keys
    return make_keys(tuple(filter(None, methods.split(", "))), path, name)


def _statements(text: str, name: str) -> Iterator[Fact]:
    start = text.find(EVIDENCE)
    if start < 0:
        return
    at = start + len(EVIDENCE)
    place: dict[str, Any] = {}
    for line in text[at:].split("\n"):
        said, found = _SAID.fullmatch(line), _PLACE.fullmatch(line)
        if said is not None and place and (said["how"] or _STATED) in _HOWS:
            values = {
                "kind": said["kind"],
                "how": said["how"] or _STATED,
                "source": unquote(said["source"] or "") or name,
                "target": unquote(said["target"]),
                **place,
            }
            yield Fact("states", at, at + len(line), name, values)
        elif found is not None:
            place = {
                "path": unquote(found["path"]),
                "lines": [int(found["first"]), int(found["last"] or found["first"])],
                "evidence": found["evidence"] or "",
            }
        at += len(line) + 1


def _render_statements(statements: Iterable[Statement]) -> Iterator[str]:
    """Yield each place with its text once, followed by the statements that it supports."""
    places: dict[str, list[str]] = {}
    for one in statements:
        last = f"-{one.line_end}" if one.line_end > one.line_start else ""
        evidence = " ".join(one.evidence.split())
        place = f"{_quote_name(one.path)}:{one.line_start}{last} {evidence}".rstrip()
        source = f"{_quote_name(one.source)} " if one.source else ""
        how = f" ({one.how})" if one.how != _STATED else ""
        said = f"  {source}{one.kind} {_quote_name(one.target)}{how}"
        places.setdefault(place, []).append(said)
    for place, below in places.items():
        yield place
        yield from below


def _quote_name(name: str) -> str:
    """Return a name in which white space is percent-encoded."""
    return _SPECIAL.sub(lambda found: "".join(f"%{byte:02X}" for byte in found[0].encode()), name)
