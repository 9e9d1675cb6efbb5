"""Relations: symbols and edges that the facts of one file make, before names are resolved.

A node is a qualified name, or has a prefix that says what else it is: `table:invoices`,
`config:mail.from`, `package:laravel/framework`. What a class is, other files decide: so an edge
says what its file states (it takes, returns, makes or calls something), and gets the name that
people use when it is asked for.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, Literal, TypeAlias, TypeGuard

from rag_assets.code.model import Fact
from rag_assets.code.names import keys_of, path_template, requested_template
from rag_assets.code.naming import CALLED, OWN, NameStyle, stem

How: TypeAlias = Literal["stated", "convention", "inferred"]

TABLE: Final = "table:"
CONFIG: Final = "config:"
PACKAGE: Final = "package:"
FILE: Final = "file:"
GLOB: Final = "glob:"
EVERY_FILE: Final = "**"
"""The glob of a rule that is for all files."""

MIDDLEWARE: Final = "middleware:"
ENDPOINT: Final = "endpoint:"
RUN: Final = "run:"

MEMBER: Final = "member_of"
"""The kind of the edge from a method to its class."""

_SEPARATORS: Final = re.compile(r"::|[.#:]")
_CONFIDENCE: Final[Mapping[How, float]] = {"stated": 1.0, "convention": 0.9, "inferred": 0.6}
_DEFINING: Final = frozenset({"declares", "operation"})
"""Kinds of facts that are definitions."""

_SHOWN_ALONE: Final = frozenset({"changed_in"})
"""Kinds of statements of derived documents that are no relations: the files have these."""

_BUILT_IN: Final = frozenset({"", "self", "static", "parent"})


@dataclass(frozen=True, slots=True)
class Symbol:
    """A definition in a file.

    Attributes:
        name: qualified.
        role: class, interface, trait, enum, function, method and the like.
        public: whether others may use it.
        line_start, line_end: in the file, counted from 1.
        content_hash: of the text that is embedded for it; None where it has no chunk of its own.
        called: a key by which it is found, where that is not its short name.
    """

    name: str
    role: str
    public: bool
    line_start: int
    line_end: int
    content_hash: str | None = None
    called: str = ""

    @property
    def short(self) -> str:
        """What people call it: without its namespace, in lower case."""
        return self.called or short_name(self.name)


@dataclass(frozen=True, slots=True)
class Edge:
    """Something that one definition states of another.

    Attributes:
        kind: of the relation.
        source: the node that it is stated of; "" for the file itself.
        target: the node that it names.
        how: stated; by a convention of the framework; or inferred.
        confidence: 0 to 1.
        line_start, line_end: of the evidence, counted from 1.
        evidence: its text, credentials masked.
        path: of the file that the evidence is in, where that is not the one that states it.
    """

    kind: str
    source: str
    target: str
    how: How
    confidence: float
    line_start: int
    line_end: int
    evidence: str
    path: str | None = None


@dataclass(frozen=True, slots=True)
class Relations:
    """What one file defines and states."""

    symbols: tuple[Symbol, ...]
    edges: tuple[Edge, ...]


NAMED: Final[Mapping[tuple[str, str], str]] = {
    ("takes", "request"): "validates_with",
    ("takes", "model"): "uses_model",
    ("touches", "model"): "uses_model",
    ("makes", "model"): "uses_model",
    ("returns", "model"): "uses_model",
    ("touches", "resource"): "responds_with",
    ("makes", "resource"): "responds_with",
    ("returns", "resource"): "responds_with",
    ("dispatches", "event"): "fires",
    ("fires", "job"): "dispatches",
}
"""What people call an edge, by its kind and the source type of what it leads to."""

_ACTIONS: Final = {"create": "creates", "alter": "alters", "rename": "renames", "drop": "drops"}
"""Relations by what a statement does to a table."""

_EVERYWHERE: Final = frozenset(
    {"applies_to", "changed_by", "depends_on", "mentions", "operation", "states"}
)
"""Kinds of facts that name what has the same name in every repository."""

UNNAMED: Final = frozenset({"takes", "returns", "makes", "touches", MEMBER})
"""Kinds of edges that are told only under another name."""


def short_name(name: str) -> str:
    """A qualified name without its namespace or module, in lower case; methods keep their class."""
    parts = _SEPARATORS.split(name.rpartition("\\")[2])
    # By convention, classes begin with a capital in all of these languages, and modules do not.
    kept = parts[-2:] if len(parts) > 1 and parts[-2][:1].isupper() else parts[-1:]
    return ".".join(kept).lower()


def relations_of(
    facts: Iterable[Fact],
    hashes: Mapping[str, str] = MappingProxyType({}),
    *,
    names: NameStyle = "qualified",
) -> Relations:
    """The symbols and edges of one file, each edge once.

    Args:
        facts: of the file.
        hashes: of what is embedded for its definitions, by their names.
        names: how its names are made; without any that others know, it has edges to what has a
            name everywhere alone.
    """
    symbols: dict[tuple[str, int, str], Symbol] = {}
    edges: dict[tuple[str, str, str], Edge] = {}
    for fact in facts:
        if fact.kind in _DEFINING and fact.symbol:
            public = bool(fact.values.get("public", fact.values.get("exported", True)))
            role = str(fact.values.get("role", fact.kind))
            lines = fact.line_start, fact.line_end
            held = hashes.get(fact.symbol)
            for called in fact.values.get("called", ("",)):
                found = Symbol(fact.symbol, role, public, *lines, content_hash=held, called=called)
                symbols.setdefault((fact.symbol, lines[0], called), found)
        for edge in _edges(fact, names) if names != "none" or fact.kind in _EVERYWHERE else ():
            edges.setdefault((edge.kind, edge.source, edge.target), edge)
    return Relations(tuple(symbols.values()), tuple(edges.values()))


def endpoint_of(method: str, path: str) -> str:
    """What requests of a method to a path have in common, whatever its parameters are called."""
    return f"{method.upper()} {path_template(path)}"


def _edges(fact: Fact, names: NameStyle) -> Iterator[Edge]:
    if fact.kind == "states" and fact.values["kind"] not in _SHOWN_ALONE:
        yield _stated_elsewhere(fact)
    made = _MAKERS.get(fact.kind)
    if names in _SPELLED and fact.kind not in _EVERYWHERE:
        made = _SPELLED[names]
    for kind, source, target in made(fact) if made is not None else ():
        if target and target not in _BUILT_IN:
            shown = fact.evidence.partition("{")[0].rstrip() if fact.kind == "declares" else ""
            lines = fact.line_start, fact.line_end
            yield Edge(kind, source, target, "stated", 1.0, *lines, shown or fact.evidence)


def _stated_elsewhere(fact: Fact) -> Edge:
    """What a derived document states, with the lines of the file that say so."""
    values = fact.values
    how: How = values["how"]
    first, last = values["lines"]
    return Edge(
        *(values["kind"], values["source"], values["target"]),
        how=how,
        confidence=_CONFIDENCE[how],
        line_start=first,
        line_end=last,
        evidence=values["evidence"],
        path=values["path"],
    )


_Triple: TypeAlias = tuple[str, str, str]


def _plain(kind: str, prefix: str = "", value: str = "name") -> Callable[[Fact], list[_Triple]]:
    def made(fact: Fact) -> list[_Triple]:
        name = fact.values.get(value)
        return [(kind, fact.symbol, prefix + name)] if isinstance(name, str) and name else []

    return made


def _between(kind: str, source: str, target: str) -> Callable[[Fact], list[_Triple]]:
    def made(fact: Fact) -> list[_Triple]:
        return [(kind, str(fact.values.get(source, "")), str(fact.values.get(target, "")))]

    return made


def _declared(fact: Fact) -> list[_Triple]:
    """The classes that a method takes and returns; built-in types have no namespace."""
    takes = [str(one.get("type", "")) for one in fact.values.get("parameters", ())]
    found = [("takes", fact.symbol, name) for name in takes if _is_class(name)]
    owner, separator, _ = fact.symbol.rpartition("::")
    if separator:
        found.append((MEMBER, fact.symbol, owner))
    returns = str(fact.values.get("returns", ""))
    return [*found, ("returns", fact.symbol, returns)] if _is_class(returns) else found


def _called(fact: Fact) -> list[_Triple]:
    """A call of a method touches its class, whose methods may all be inherited."""
    name = str(fact.values.get("name", ""))
    owner, separator, _ = name.partition("::")
    calls = [("calls", fact.symbol, name)]
    own = owner == fact.symbol.rpartition("::")[0]
    return [*calls, ("touches", fact.symbol, owner)] if separator and not own else calls


def _on_table(fact: Fact) -> list[_Triple]:
    """What a statement does to a table, and the tables that its foreign keys name."""
    found = []
    table, action = fact.values.get("table"), _ACTIONS.get(str(fact.values.get("action")))
    if isinstance(table, str) and action is not None:
        found.append((action, fact.symbol, TABLE + table))
    renamed = fact.values.get("to")
    if isinstance(renamed, str):
        found.append(("renames", fact.symbol, TABLE + renamed))
    foreign = [c.get("on") for c in fact.values.get("commands", ()) if c.get("name") == "foreign"]
    others = [name for name in foreign if isinstance(name, str)]
    return [*found, *(("references", fact.symbol, TABLE + name) for name in others)]


def _relates(fact: Fact) -> list[_Triple]:
    """The model that a relation of a model leads to, and the tables and models on its way."""
    given = fact.values.get("arguments", {})
    related, through, table = (given.get(name) for name in ("related", "through", "table"))
    found = [("relates_to", fact.symbol, name) for name in (related, through) if _is_text(name)]
    return [*found, ("relates_to", fact.symbol, TABLE + table)] if _is_text(table) else found


def _guards(fact: Fact) -> list[_Triple]:
    """The middleware that a controller states, of some of its methods or of itself."""
    name = str(fact.values.get("name", ""))
    target = name if "\\" in name else MIDDLEWARE + name
    methods = [one for one in fact.values.get("methods", ()) if _is_text(one)]
    guarded = [f"{fact.symbol}::{one}" for one in methods] or [fact.symbol]
    return [("guarded_by", one, target) for one in guarded]


def _applies(fact: Fact) -> list[_Triple]:
    """The files that a rule is for: those of its globs, or all."""
    globs = [one for one in fact.values.get("globs", ()) if _is_text(one) and one]
    if fact.values.get("always"):
        globs = [EVERY_FILE]
    return [("applies_to", fact.symbol, GLOB + one) for one in globs]


def _mentions(fact: Fact) -> list[_Triple]:
    """What a document speaks of: a file, or whatever is called so where only one thing is."""
    name, what = str(fact.values.get("name", "")), fact.values.get("what")
    if what == "path":
        return [("documents", "", FILE + name.lstrip("./"))]
    if what == "symbol":
        return [("documents", "", CALLED + short_name(name.removesuffix("()").replace("@", "::")))]
    return [("documents", "", CALLED + key) for key in keys_of(name)]


def _operation(fact: Fact) -> list[_Triple]:
    method, path = str(fact.values.get("method", "")), str(fact.values.get("path", ""))
    return [("serves", fact.symbol, ENDPOINT + endpoint_of(method, path))]


def _maps(fact: Fact) -> list[_Triple]:
    table = fact.values.get("table")
    return [("maps_to", fact.symbol, TABLE + table)] if _is_text(table) else []


def _is_text(value: object) -> TypeGuard[str]:
    return isinstance(value, str)


def _is_class(name: str) -> bool:
    return name[:1].isupper() or "\\" in name


_MAKERS: Final[Mapping[str, Callable[[Fact], list[_Triple]]]] = {
    "declares": _declared,
    "imports": _plain("imports"),
    "extends": _plain("extends"),
    "implements": _plain("implements"),
    "uses_trait": _plain("uses_trait"),
    "calls": _called,
    "creates_object": _plain("makes"),
    "dispatches": _plain("dispatches"),
    "fires": _plain("fires"),
    "listens_to": _between("listens_to", "listener", "event"),
    "observes": _between("observes", "observer", "model"),
    "policy_of": _between("authorizes", "policy", "model"),
    "authorizes": _plain("authorizes", value="model"),
    "binds": _between("binds", "abstract", "concrete"),
    "queries_table": _plain("queries_table", TABLE, "table"),
    "configured_by": _plain("configured_by", CONFIG, "key"),
    "schema": _on_table,
    "relation": _relates,
    "guards": _guards,
    "applies_to": _applies,
    "mentions": _mentions,
    "operation": _operation,
    "eloquent_class": _maps,
    "depends_on": _plain("depends_on", PACKAGE, "package"),
    "changed_by": _between("changed_by", "file", "run"),
}


def _own(name: str) -> str:
    return OWN + name if name else ""


def _member(fact: Fact) -> list[_Triple]:
    owner = fact.symbol.rpartition(".")[0]
    return [(MEMBER, _own(fact.symbol), _own(owner))] if owner else []


def _of_python(fact: Fact) -> list[_Triple]:
    """Edges of Python, whose facts spell names as naming has them."""
    if fact.kind == "declares":
        return _member(fact)
    name = str(fact.values.get("name", ""))
    if fact.kind == "imports":
        return [("imports", "", "." * int(fact.values.get("level", 0)) + name)]
    if fact.kind not in {"extends", "calls"} or not name:
        return []
    return [(fact.kind, _own(fact.symbol), name)]


_MOST_NAMES: Final = 50


def _of_javascript(fact: Fact) -> list[_Triple]:
    """Edges of JavaScript and what is written like it."""
    values = fact.values
    if fact.kind == "declares":
        return _member(fact)
    if fact.kind == "fetches":
        path = requested_template(str(values.get("path", "")))
        asked = endpoint_of(str(values.get("method", "")), path)
        return [("requests", _own(fact.symbol), ENDPOINT + asked)]
    if fact.kind == "imports":
        module = str(values.get("name", ""))
        names = [str(one[0]) for one in values.get("names", ())][:_MOST_NAMES] or ["default"]
        return [("imports", "", _from_module(module, name)) for name in names]
    name, module = str(values.get("name", "")), str(values.get("module", ""))
    if fact.kind not in {"extends", "implements", "calls"} or not name:
        return []
    target = _from_module(module, name) if module else _own(name)
    return [(fact.kind, _own(fact.symbol), target)]


def _from_module(module: str, name: str) -> str:
    """A name of a module; a default export is called like its file, by convention."""
    if not module.startswith((".", "@/", "~/", "#/", "$lib/", "src/")):
        parts = module.split("/")
        return PACKAGE + "/".join(parts[: 2 if module.startswith("@") else 1])
    place = stem(module) if module.strip(".") else f"{module}/"
    is_component = module.endswith((".vue", ".svelte"))
    own = name if name != "default" or is_component else place.rpartition("/")[2]
    return f"{place}#{own}"


_SPELLED: Final[Mapping[NameStyle, Callable[[Fact], list[_Triple]]]] = {
    "python": _of_python,
    "javascript": _of_javascript,
}
