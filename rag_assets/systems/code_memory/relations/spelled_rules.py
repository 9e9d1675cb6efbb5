"""Edge rules for languages in which names depend on the path of their file.

Names in facts of Java are almost fully qualified. Facts of the other languages contain spellings of
names; see naming.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import takewhile
from typing import Final

from rag_assets.ingest.chunking.model import Fact
from rag_assets.systems.code_memory.relations.edge_rules import Triple, of_event
from rag_assets.systems.code_memory.symbols.names import (
    CONFIG,
    ENDPOINT,
    ENV,
    MEMBER,
    PACKAGE,
    TABLE,
    format_endpoint,
    requested_template,
)
from rag_assets.systems.code_memory.symbols.naming import OWN, NameStyle, go_module, stem


def _own_name(name: str) -> str:
    return OWN + name if name else ""


READING: Final[Mapping[str, str]] = {"configured_by": CONFIG, "reads_env": ENV}
"""Prefix of the name of the setting that a fact reads, by the kind of the fact."""


def read_settings(fact: Fact, source: str) -> list[Triple]:
    """Return the edge from the definition that reads a setting or an environment variable."""
    key = str(fact.values.get("key", ""))
    return [("configured_by", source, READING[fact.kind] + key)] if key else []


def edges_of_event(fact: Fact) -> list[Triple]:
    """Return the edge from the emitter or the listener of a named event."""
    is_own = not fact.values.get("is_imported")
    return [(kind, _own_name(who) if is_own else who, event) for kind, who, event in of_event(fact)]


def _edges_of_member(fact: Fact) -> list[Triple]:
    owner = fact.symbol.rpartition(".")[0]
    return [(MEMBER, _own_name(fact.symbol), _own_name(owner))] if owner else []


def _edges_of_python(fact: Fact) -> list[Triple]:
    """Return the edges of a Python fact; the fact spells names as described in naming."""
    if fact.kind == "declares":
        return _edges_of_member(fact)
    name = str(fact.values.get("name", ""))
    if fact.kind == "imports":
        return [("imports", "", "." * int(fact.values.get("level", 0)) + name)]
    if fact.kind in READING:
        return read_settings(fact, _own_name(fact.symbol))
    if fact.kind not in {"extends", "calls"} or not name:
        return []
    return [(fact.kind, _own_name(fact.symbol), name)]


_MOST_NAMES: Final = 50


def _edges_of_javascript(fact: Fact) -> list[Triple]:
    """Return the edges of a fact of JavaScript or of a language with its syntax."""
    values = fact.values
    if fact.kind == "declares":
        return _edges_of_member(fact)
    if fact.kind == "fetches":
        path = requested_template(str(values.get("path", "")))
        asked = format_endpoint(str(values.get("method", "")), path)
        return [("requests", _own_name(fact.symbol), ENDPOINT + asked)]
    if fact.kind in READING:
        return read_settings(fact, _own_name(fact.symbol))
    if fact.kind == "imports":
        module = str(values.get("name", ""))
        names = [str(one[0]) for one in values.get("names", ())][:_MOST_NAMES] or ["default"]
        return [("imports", "", from_module(module, name)) for name in names]
    name, module = str(values.get("name", "")), str(values.get("module", ""))
    if fact.kind not in {"extends", "implements", "calls"} or not name:
        return []
    target = from_module(module, name) if module else _own_name(name)
    return [(fact.kind, _own_name(fact.symbol), target)]


def _edges_of_java(fact: Fact) -> list[Triple]:
    """Return the edges of a Java fact; a type without an import is in the file's own package."""
    name, symbol = str(fact.values.get("name", "")), fact.symbol
    if fact.kind == "declares":
        owner = symbol.rpartition(".")[0]
        return [(MEMBER, symbol, owner)] if is_type(owner.rpartition(".")[2]) else []
    if fact.kind == "imports":
        return [] if name.endswith("*") else [("imports", "", name)]
    if fact.kind not in {"extends", "implements", "calls"} or not name:
        return []
    if not is_type(name):
        return [(fact.kind, symbol, name)]
    own = ".".join(takewhile(lambda part: not is_type(part), symbol.split(".")))
    # At most one package can have such a type; otherwise javac would report an ambiguous name.
    packages = [own, *fact.values.get("packages", ())]
    return [(fact.kind, symbol, f"{one}.{name}".lstrip(".")) for one in dict.fromkeys(packages)]


def _edges_of_swift(fact: Fact) -> list[Triple]:
    """Return the edges of a Swift fact; types of one module need no qualifier."""
    if fact.kind == "imports":
        return [("imports", "", PACKAGE + str(fact.values.get("name", "")))]
    return _edges_of_java(fact)


def _edges_of_go(fact: Fact) -> list[Triple]:
    """Return the edges of a Go fact; packages are folders."""
    name, module = str(fact.values.get("name", "")), str(fact.values.get("module", ""))
    if fact.kind == "declares":
        owner = fact.symbol.rpartition(".")[0]
        return [(MEMBER, _own_name(fact.symbol), _own_name(owner))] if "." in owner else []
    if fact.kind == "imports":
        return [("imports", "", PACKAGE + name)]
    if fact.kind not in {"extends", "implements", "calls"} or not name:
        return []
    place = go_module(module)
    target = f"{place}#{name.partition('.')[2]}" if place else PACKAGE + module
    return [(fact.kind, _own_name(fact.symbol), target if module else _own_name(name))]


def _edges_of_rust(fact: Fact) -> list[Triple]:
    """Return the edges of a Rust fact; modules are files and folders."""
    name, symbol = str(fact.values.get("name", "")), fact.symbol.replace("::", ".")
    if fact.kind == "declares":
        owner = symbol.rpartition(".")[0]
        return [(MEMBER, _own_name(symbol), _own_name(owner))] if owner else []
    if fact.kind == "imports":
        names = [str(one[0]) for one in fact.values.get("names", ())][:_MOST_NAMES]
        return [("imports", "", _find_rust_target(one)) for one in names]
    if fact.kind not in {"extends", "implements", "calls"} or not name:
        return []
    return [(fact.kind, _own_name(symbol), rust_path(name))]


_CRATE: Final = "src"
"""The folder of a crate's root module, by Cargo's convention."""


def _find_rust_target(path: str) -> str:
    first = path.partition("::")[0]
    return rust_path(path) if first in {"crate", "self", "super"} else PACKAGE + first


def rust_path(name: str) -> str:
    """Return a Rust path in the spelling of naming; a path without a prefix starts at a submodule.

    Args:
        name: `crate::tax::Rule::new`, `super::store::Repo`, `lines::count`, `Invoice::total`.
    """
    parts = name.split("::")
    before, rest = "./", parts
    if parts[0] == "crate":
        before, rest = "@/", parts[1:]
    elif parts[0] in {"self", "super"}:
        above = len(list(takewhile(lambda part: part == "super", parts)))
        before, rest = "../" * above or "./", parts[above or 1 :]
    elif len(parts) == 1 or is_type(parts[0]):
        return _own_name(".".join(parts))
    modules = list(takewhile(lambda part: not is_type(part), rest[:-1]))
    if before == "@/" and not modules:
        return f"@/{_CRATE}#{'.'.join(rest)}"
    return f"{before}{'/'.join(modules)}#{'.'.join(rest[len(modules) :])}"


_SQL: Final = {"create": "creates", "alter": "alters", "drop": "drops", "rename": "renames"}
"""Edge kinds by the action of a statement on a table."""


def _edges_of_sql(fact: Fact) -> list[Triple]:
    """Return the edges of an SQL fact: actions on tables, and tables that SQL statements name."""
    values, name = fact.values, fact.symbol
    if fact.kind not in {"declares", "changes"} or not name:
        return []
    is_table = values.get("what") == "table"
    kind = _SQL.get(str(values.get("verb"))) if is_table else None
    found = [(kind, name, TABLE + _strip_qualifier(name))] if kind is not None else []
    named = "references" if is_table else "queries_table"
    tables = [_strip_qualifier(str(one)) for one in values.get("tables", ())]
    return [*found, *((named, name, TABLE + one) for one in tables)]


def _strip_qualifier(name: str) -> str:
    return name.rpartition(".")[2]


def is_type(name: str) -> bool:
    """Return whether a name is a type's; by convention, names of packages start in lower case."""
    return name[:1].isupper()


def from_module(module: str, name: str) -> str:
    """Return a name in a JavaScript module; a default export is named after the file."""
    if not module.startswith((".", "@/", "~/", "#/", "$lib/", "src/")):
        parts = module.split("/")
        return PACKAGE + "/".join(parts[: 2 if module.startswith("@") else 1])
    place = stem(module) if module.strip(".") else f"{module}/"
    is_component = module.endswith((".vue", ".svelte"))
    own = name if name != "default" or is_component else place.rpartition("/")[2]
    return f"{place}#{own}"


def edges_of_query(fact: Fact, names: NameStyle) -> list[Triple]:
    """Return the edge to a table that an SQL query in a string names.

    Args:
        fact: the fact that states the query.
        names: how names in its file are qualified; for "none", the edge starts at the file itself.
    """
    symbol = fact.symbol.replace("::", ".") if names == "rust" else fact.symbol
    source = symbol if names in {"java", "swift"} else _own_name(symbol)
    table = TABLE + _strip_qualifier(str(fact.values["table"]))
    return [("queries_table", "" if names == "none" else source, table)]


SPELLED: Final[Mapping[NameStyle, Callable[[Fact], list[Triple]]]] = {
    "python": _edges_of_python,
    "javascript": _edges_of_javascript,
    "java": _edges_of_java,
    "swift": _edges_of_swift,
    "go": _edges_of_go,
    "rust": _edges_of_rust,
    "sql": _edges_of_sql,
}
"""The edge rule of each name style."""
