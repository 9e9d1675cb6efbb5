"""Rules that turn facts into edges, by the kind of the fact and the language of its file.

PHP facts contain qualified names; their rules are in FACT_RULES. Facts of other languages contain
names as written, which can only be resolved with the path of their file (see symbols.naming); their
rules are in STYLE_RULES.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import takewhile
from typing import Final, TypeAlias, TypeGuard

from rag_assets.ingest.chunking.model import Fact
from rag_assets.systems.code_memory.symbols.names import (
    ABILITY,
    ASKS,
    CONFIG,
    ENDPOINT,
    ENV,
    EVENT,
    EVERY_FILE,
    FILE,
    GLOB,
    MEMBER,
    MIDDLEWARE,
    OWN_SETTING_PREFIX,
    PACKAGE,
    TABLE,
    find_policy_method,
    format_endpoint,
    format_requested_template,
    get_authorizing_method,
    get_short_name,
    iter_usual_policies,
    list_search_keys,
)
from rag_assets.systems.code_memory.symbols.naming import (
    OWN_PREFIX,
    SHORT_NAME_PREFIX,
    NameStyle,
    find_go_folder,
    get_module_stem,
)

_ACTIONS: Final = {"create": "creates", "alter": "alters", "rename": "renames", "drop": "drops"}
"""Edge kinds by the action of a statement on a table."""

_OR: Final = "|"
"""Separates the classes of a union type."""

EVENTS: Final = ("emits_event", "listens_to_event")
"""Kinds of facts about named events."""

Triple: TypeAlias = tuple[str, str, str]
"""Kind, source and target of an edge."""

EdgeRule: TypeAlias = Callable[[Fact], list[Triple]]
"""Returns the edges of a fact."""

_REFERENCES: Final = frozenset({"extends", "implements", "calls"})
"""Kinds of facts in all languages whose value `name` is a definition."""


def _build_rule(kind: str, prefix: str = "", value: str = "name") -> EdgeRule:
    def build_edges(fact: Fact) -> list[Triple]:
        name = fact.values.get(value)
        return [(kind, fact.symbol, prefix + name)] if isinstance(name, str) and name else []

    return build_edges


def _build_two_ended_rule(kind: str, source: str, target: str) -> EdgeRule:
    return lambda fact: [(kind, str(fact.values.get(source, "")), str(fact.values.get(target, "")))]


def _list_edges_of_signature(fact: Fact) -> list[Triple]:
    types = [str(parameter.get("type", "")) for parameter in fact.values.get("parameters", ())]
    takes = [("takes", name) for type_ in types for name in type_.split(_OR)]
    returns = [("returns", name) for name in str(fact.values.get("returns", "")).split(_OR)]
    owner, separator, _ = fact.symbol.rpartition("::")
    member = [(MEMBER, owner)] if separator else []
    ends = [*filter(_is_class, takes), *member, *filter(_is_class, returns)]
    return [(kind, fact.symbol, name) for kind, name in ends]


def _list_edges_of_call(fact: Fact) -> list[Triple]:
    """Return edges to the called method and to the class on which it is called.

    The second edge is needed because the class may inherit the method.
    """
    name = str(fact.values.get("name", ""))
    owner, separator, _ = name.partition("::")
    calls = [("calls", fact.symbol, name)]
    is_own = owner == fact.symbol.rpartition("::")[0]
    return [*calls, ("touches", fact.symbol, owner)] if separator and not is_own else calls


def _list_edges_of_table_statement(fact: Fact) -> list[Triple]:
    action = _ACTIONS.get(str(fact.values.get("action")))
    ends = [(action, fact.values.get("table"))] if action is not None else []
    ends.append(("renames", fact.values.get("to")))
    foreign = [c.get("on") for c in fact.values.get("commands", ()) if c.get("name") == "foreign"]
    ends += [("references", name) for name in foreign]
    return [(kind, fact.symbol, TABLE + name) for kind, name in ends if isinstance(name, str)]


def _list_edges_of_event(fact: Fact) -> list[Triple]:
    event = EVENT + str(fact.values["event"])
    if fact.kind == "emits_event":
        return [("fires", fact.symbol, event)]
    return [("listens_to", str(fact.values["listener"]), event)]


def _list_edges_of_model_relation(fact: Fact) -> list[Triple]:
    arguments = fact.values.get("arguments", {})
    related, through, table = (arguments.get(name) for name in ("related", "through", "table"))
    edges = [("relates_to", fact.symbol, name) for name in (related, through) if _is_text(name)]
    return [*edges, ("relates_to", fact.symbol, TABLE + table)] if _is_text(table) else edges


def _list_edges_of_authorization(fact: Fact) -> list[Triple]:
    model, ability = str(fact.values.get("model", "")), str(fact.values.get("ability", ""))
    source, method = get_authorizing_method(fact), find_policy_method(fact)
    edges = [("authorizes", source, ABILITY + ability)] if ability else []
    if not model:
        return edges
    if not method.isidentifier():  # No policy has a method with such a name.
        return [*edges, ("touches", source, model)]
    asks_edges = [(ASKS, source, f"{policy}::{method}") for policy in iter_usual_policies(model)]
    return [*edges, ("authorizes", source, model), *asks_edges]


def _list_edges_of_ability(fact: Fact) -> list[Triple]:
    ability, answers = str(fact.values["ability"]), str(fact.values["answers"])
    return [("authorizes", ABILITY + ability, answers)] if answers else []


def _list_edges_of_guard(fact: Fact) -> list[Triple]:
    name = str(fact.values.get("name", ""))
    target = name if "\\" in name else MIDDLEWARE + name
    methods = filter(_is_text, fact.values.get("methods", ()))
    guarded = [f"{fact.symbol}::{method}" for method in methods] or [fact.symbol]
    return [("guarded_by", source, target) for source in guarded]


def _list_edges_of_applied_rule(fact: Fact) -> list[Triple]:
    globs = [glob for glob in fact.values.get("globs", ()) if _is_text(glob) and glob]
    if fact.values.get("always"):
        globs = [EVERY_FILE]
    return [("applies_to", fact.symbol, GLOB + glob) for glob in globs]


def _list_edges_of_mention(fact: Fact) -> list[Triple]:
    name, what = str(fact.values.get("name", "")), str(fact.values.get("what", ""))
    return [("documents", "", target) for target in list_targets_of_mention(name, what)]


def list_targets_of_mention(name: str, what: str) -> list[str]:
    """Return the targets of the edges for a name that a document mentions.

    Args:
        name: the name as written in the document.
        what: its apparent kind: path, symbol, route or name.
    """
    if what == "path":
        return [FILE + name.lstrip("./")]
    if what == "symbol":
        return [SHORT_NAME_PREFIX + get_short_name(name.removesuffix("()").replace("@", "::"))]
    return [SHORT_NAME_PREFIX + key for key in list_search_keys(name)]


def _list_edges_of_environment(fact: Fact) -> list[Triple]:
    """Return the edge to an environment variable.

    It starts at the setting that the variable fills, or else at the definition that reads it.
    """
    setting, key = fact.values.get("setting"), fact.values.get("key")
    source = OWN_SETTING_PREFIX + setting if _is_text(setting) else fact.symbol
    return [("configured_by", source, ENV + key)] if _is_text(key) else []


def _is_text(value: object) -> TypeGuard[str]:
    return isinstance(value, str)


def _is_class(end: tuple[str, str]) -> bool:
    return end[1][:1].isupper() or "\\" in end[1]


FACT_RULES: Final[Mapping[str, EdgeRule]] = {
    "declares": _list_edges_of_signature,
    "imports": _build_rule("imports"),
    "extends": _build_rule("extends"),
    "implements": _build_rule("implements"),
    "uses_trait": _build_rule("uses_trait"),
    "calls": _list_edges_of_call,
    "creates_object": _build_rule("makes"),
    "takes": _build_rule("takes"),
    "dispatches": _build_rule("dispatches"),
    "fires": _build_rule("fires"),
    "listens_to": _build_two_ended_rule("listens_to", "listener", "event"),
    **dict.fromkeys(EVENTS, _list_edges_of_event),
    "observes": _build_two_ended_rule("observes", "observer", "model"),
    "policy_of": _build_two_ended_rule("authorizes", "policy", "model"),
    "authorizes": _list_edges_of_authorization,
    "defines_ability": _list_edges_of_ability,
    "binds": _build_two_ended_rule("binds", "abstract", "concrete"),
    "queries_table": _build_rule("queries_table", TABLE, "table"),
    "configured_by": _build_rule("configured_by", CONFIG, "key"),
    "reads_env": _list_edges_of_environment,
    "schema": _list_edges_of_table_statement,
    "relation": _list_edges_of_model_relation,
    "guards": _list_edges_of_guard,
    "applies_to": _list_edges_of_applied_rule,
    "mentions": _list_edges_of_mention,
    "operation": lambda fact: [
        ("serves", fact.symbol, ENDPOINT + _format_endpoint(fact.values.get("path", ""), fact))
    ],
    "eloquent_class": _build_rule("maps_to", TABLE, "table"),
    "depends_on": _build_rule("depends_on", PACKAGE, "package"),
    "changed_by": _build_two_ended_rule("changed_by", "file", "run"),
}
"""The edge rule of each kind of fact, for files with qualified names."""


def _spell_own_name(name: str) -> str:
    return OWN_PREFIX + name if name else ""


_READ_SETTINGS: Final[Mapping[str, str]] = {"configured_by": CONFIG, "reads_env": ENV}
"""Prefix of the name of the setting that a fact reads, by the kind of the fact."""


def _list_common_edges(fact: Fact) -> list[Triple]:
    """Return the edges of definitions and of read settings in Python and JavaScript."""
    source, owner = _spell_own_name(fact.symbol), fact.symbol.rpartition(".")[0]
    if fact.kind == "declares":
        return [(MEMBER, source, _spell_own_name(owner))] if owner else []
    key = str(fact.values.get("key", "")) if fact.kind in _READ_SETTINGS else ""
    return [("configured_by", source, _READ_SETTINGS[fact.kind] + key)] if key else []


def _format_endpoint(path: object, fact: Fact) -> str:
    return format_endpoint(str(fact.values.get("method", "")), str(path))


def list_edges_of_named_event(fact: Fact) -> list[Triple]:
    """Return the edge to an event from its emitter or listener, as the text spells its name."""
    is_own = not fact.values.get("is_imported")
    return [
        (kind, _spell_own_name(source) if is_own else source, event)
        for kind, source, event in _list_edges_of_event(fact)
    ]


def _list_edges_of_python(fact: Fact) -> list[Triple]:
    name = str(fact.values.get("name", ""))
    if fact.kind == "imports":
        return [("imports", "", "." * int(fact.values.get("level", 0)) + name)]
    if fact.kind in {"extends", "calls"} and name:
        return [(fact.kind, _spell_own_name(fact.symbol), name)]
    return _list_common_edges(fact)


_MAX_NAMES: Final = 50


def _list_edges_of_javascript(fact: Fact) -> list[Triple]:
    """Return the edges of a fact of JavaScript or of a language with its syntax."""
    values = fact.values
    if fact.kind == "fetches":
        path = format_requested_template(str(values.get("path", "")))
        endpoint = ENDPOINT + _format_endpoint(path, fact)
        return [("requests", _spell_own_name(fact.symbol), endpoint)]
    name, module = str(values.get("name", "")), str(values.get("module", ""))
    if fact.kind == "imports":
        names = [str(pair[0]) for pair in values.get("names", ())][:_MAX_NAMES] or ["default"]
        return [("imports", "", spell_module_name(name, imported)) for imported in names]
    if fact.kind in _REFERENCES and name:
        target = spell_module_name(module, name) if module else _spell_own_name(name)
        return [(fact.kind, _spell_own_name(fact.symbol), target)]
    return _list_common_edges(fact)


def _list_edges_of_java(fact: Fact) -> list[Triple]:
    """Return the edges of a Java fact; types without an import are in the file's own package."""
    name, symbol = str(fact.values.get("name", "")), fact.symbol
    if fact.kind == "declares":
        owner = symbol.rpartition(".")[0]
        return [(MEMBER, symbol, owner)] if _is_type(owner.rpartition(".")[2]) else []
    if fact.kind == "imports":
        return [] if name.endswith("*") else [("imports", "", name)]
    if fact.kind not in _REFERENCES or not name:
        return []
    if not _is_type(name):
        return [(fact.kind, symbol, name)]
    own = ".".join(takewhile(lambda part: not _is_type(part), symbol.split(".")))
    # At most one package has such a type; otherwise javac would report an ambiguous name.
    packages = [own, *fact.values.get("packages", ())]
    return [
        (fact.kind, symbol, f"{package}.{name}".lstrip(".")) for package in dict.fromkeys(packages)
    ]


def _list_edges_of_swift(fact: Fact) -> list[Triple]:
    """Return the edges of a Swift fact; types of one module need no qualifier."""
    if fact.kind == "imports":
        return [("imports", "", PACKAGE + str(fact.values.get("name", "")))]
    return _list_edges_of_java(fact)


def _list_edges_of_go(fact: Fact) -> list[Triple]:
    """Return the edges of a Go fact; packages are folders."""
    name, module = str(fact.values.get("name", "")), str(fact.values.get("module", ""))
    if fact.kind == "declares":
        owner = fact.symbol.rpartition(".")[0]
        return (
            [(MEMBER, _spell_own_name(fact.symbol), _spell_own_name(owner))] if "." in owner else []
        )
    if fact.kind == "imports":
        return [("imports", "", PACKAGE + name)]
    if fact.kind not in _REFERENCES or not name:
        return []
    place = find_go_folder(module)
    target = f"{place}#{name.partition('.')[2]}" if place else PACKAGE + module
    return [(fact.kind, _spell_own_name(fact.symbol), target if module else _spell_own_name(name))]


def _list_edges_of_rust(fact: Fact) -> list[Triple]:
    name, symbol = str(fact.values.get("name", "")), fact.symbol.replace("::", ".")
    if fact.kind == "declares":
        owner = symbol.rpartition(".")[0]
        return [(MEMBER, _spell_own_name(symbol), _spell_own_name(owner))] if owner else []
    if fact.kind == "imports":
        names = [str(pair[0]) for pair in fact.values.get("names", ())][:_MAX_NAMES]
        return [("imports", "", _find_rust_target(name)) for name in names]
    if fact.kind not in _REFERENCES or not name:
        return []
    return [(fact.kind, _spell_own_name(symbol), spell_rust_path(name))]


_CRATE: Final = "src"
"""The folder of a crate's root module, by Cargo's convention."""


def _find_rust_target(path: str) -> str:
    first = path.partition("::")[0]
    return spell_rust_path(path) if first in {"crate", "self", "super"} else PACKAGE + first


def spell_rust_path(name: str) -> str:
    """Return a Rust path in the spelling that symbols.naming describes.

    A path without a prefix starts at a submodule.

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
    elif len(parts) == 1 or _is_type(parts[0]):
        return _spell_own_name(".".join(parts))
    modules = list(takewhile(lambda part: not _is_type(part), rest[:-1]))
    if before == "@/" and not modules:
        return f"@/{_CRATE}#{'.'.join(rest)}"
    return f"{before}{'/'.join(modules)}#{'.'.join(rest[len(modules) :])}"


def _list_edges_of_sql(fact: Fact) -> list[Triple]:
    """Return the edges of an SQL fact to the tables that its statement changes or names."""
    values, name = fact.values, fact.symbol
    if fact.kind not in {"declares", "changes"} or not name:
        return []
    is_table = values.get("what") == "table"
    action = _ACTIONS.get(str(values.get("verb"))) if is_table else None
    edges = [(action, name, TABLE + _strip_qualifier(name))] if action is not None else []
    kind = "references" if is_table else "queries_table"
    tables = [_strip_qualifier(str(table)) for table in values.get("tables", ())]
    return [*edges, *((kind, name, TABLE + table) for table in tables)]


def _strip_qualifier(name: str) -> str:
    return name.rpartition(".")[2]


def _is_type(name: str) -> bool:
    """Return whether a name starts with a capital; by convention, packages do not."""
    return name[:1].isupper()


def spell_module_name(module: str, name: str) -> str:
    """Return the spelling of a name that is imported from a JavaScript module.

    A default export is named after its file. A name from a package stands for the whole package.
    """
    if not module.startswith((".", "@/", "~/", "#/", "$lib/", "src/")):
        parts = module.split("/")
        return PACKAGE + "/".join(parts[: 2 if module.startswith("@") else 1])
    place = get_module_stem(module) if module.strip(".") else f"{module}/"
    is_component = module.endswith((".vue", ".svelte"))
    own = name if name != "default" or is_component else place.rpartition("/")[2]
    return f"{place}#{own}"


def list_edges_of_query(fact: Fact, names: NameStyle) -> list[Triple]:
    """Return the edge to a table in an SQL string; for the style "none", it starts at the file."""
    symbol = fact.symbol.replace("::", ".") if names == "rust" else fact.symbol
    source = symbol if names in {"java", "swift"} else _spell_own_name(symbol)
    table = TABLE + _strip_qualifier(str(fact.values["table"]))
    return [("queries_table", "" if names == "none" else source, table)]


STYLE_RULES: Final[Mapping[NameStyle, EdgeRule]] = {
    "python": _list_edges_of_python,
    "javascript": _list_edges_of_javascript,
    "java": _list_edges_of_java,
    "swift": _list_edges_of_swift,
    "go": _list_edges_of_go,
    "rust": _list_edges_of_rust,
    "sql": _list_edges_of_sql,
}
"""The edge rule of each name style."""
