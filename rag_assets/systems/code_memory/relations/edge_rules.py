"""Rules that turn facts into edges (kind, source and target), by the kind of the fact.

Names in facts of PHP are qualified; for the other languages see spelled_rules.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
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
    OWN_SETTING,
    PACKAGE,
    TABLE,
    format_endpoint,
    list_keys,
    short_name,
)
from rag_assets.systems.code_memory.symbols.naming import CALLED
from rag_assets.systems.code_memory.symbols.policy_names import (
    find_policy_method,
    get_authorizing_method,
    usual_policies,
)

_ACTIONS: Final = {"create": "creates", "alter": "alters", "rename": "renames", "drop": "drops"}
"""Edge kinds by the action of a statement on a table."""

_OR: Final = "|"
"""Separates the classes of a union type."""

EVENTS: Final = ("emits_event", "listens_to_event")
"""Kinds of facts about named events."""

Triple: TypeAlias = tuple[str, str, str]
"""Kind, source and target of an edge."""


def _build_rule(kind: str, prefix: str = "", value: str = "name") -> Callable[[Fact], list[Triple]]:
    def build_edges(fact: Fact) -> list[Triple]:
        name = fact.values.get(value)
        return [(kind, fact.symbol, prefix + name)] if isinstance(name, str) and name else []

    return build_edges


def _build_two_ended_rule(kind: str, source: str, target: str) -> Callable[[Fact], list[Triple]]:
    def build_edges(fact: Fact) -> list[Triple]:
        return [(kind, str(fact.values.get(source, "")), str(fact.values.get(target, "")))]

    return build_edges


def _edges_of_signature(fact: Fact) -> list[Triple]:
    """Return edges to the classes that a method takes and returns; built-in types yield none."""
    types = [str(one.get("type", "")) for one in fact.values.get("parameters", ())]
    takes = [name for one in types for name in one.split(_OR)]
    found = [("takes", fact.symbol, name) for name in takes if _is_class(name)]
    owner, separator, _ = fact.symbol.rpartition("::")
    if separator:
        found.append((MEMBER, fact.symbol, owner))
    returns = str(fact.values.get("returns", "")).split(_OR)
    return [*found, *(("returns", fact.symbol, name) for name in returns if _is_class(name))]


def _edges_of_call(fact: Fact) -> list[Triple]:
    """Return the edge of a call, and an edge to the named class; the method may be inherited."""
    name = str(fact.values.get("name", ""))
    owner, separator, _ = name.partition("::")
    calls = [("calls", fact.symbol, name)]
    own = owner == fact.symbol.rpartition("::")[0]
    return [*calls, ("touches", fact.symbol, owner)] if separator and not own else calls


def _edges_of_table_statement(fact: Fact) -> list[Triple]:
    """Return the edges of a statement on a table: its action, and tables of its foreign keys."""
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


def of_event(fact: Fact) -> list[Triple]:
    """Return the edge from the emitter or the listener of a named event."""
    event = EVENT + str(fact.values["event"])
    if fact.kind == "emits_event":
        return [("fires", fact.symbol, event)]
    return [("listens_to", str(fact.values["listener"]), event)]


def _edges_of_model_relation(fact: Fact) -> list[Triple]:
    """Return edges to the model that a relation leads to, and to tables and models in between."""
    given = fact.values.get("arguments", {})
    related, through, table = (given.get(name) for name in ("related", "through", "table"))
    found = [("relates_to", fact.symbol, name) for name in (related, through) if _is_text(name)]
    return [*found, ("relates_to", fact.symbol, TABLE + table)] if _is_text(table) else found


def _edges_of_authorization(fact: Fact) -> list[Triple]:
    """Return edges to the checked ability, the checked model, and the policies that may decide."""
    model, source, method = (
        str(fact.values.get("model", "")),
        get_authorizing_method(fact),
        find_policy_method(fact),
    )
    ability = str(fact.values.get("ability", ""))
    found = [("authorizes", source, ABILITY + ability)] if ability else []
    if not model:
        return found
    if not method.isidentifier():
        # No policy can decide this: the ability is not a valid method name.
        return [*found, ("touches", source, model)]
    asked = [(ASKS, source, f"{policy}::{method}") for policy in usual_policies(model)]
    return [*found, ("authorizes", source, model), *asked]


def _edges_of_ability(fact: Fact) -> list[Triple]:
    """Return the edge from an ability to the method that decides it."""
    ability, answers = str(fact.values["ability"]), str(fact.values["answers"])
    return [("authorizes", ABILITY + ability, answers)] if answers else []


def _edges_of_guard(fact: Fact) -> list[Triple]:
    """Return edges from a controller, or some of its methods, to their middleware."""
    name = str(fact.values.get("name", ""))
    target = name if "\\" in name else MIDDLEWARE + name
    methods = [one for one in fact.values.get("methods", ()) if _is_text(one)]
    guarded = [f"{fact.symbol}::{one}" for one in methods] or [fact.symbol]
    return [("guarded_by", one, target) for one in guarded]


def _edges_of_applied_rule(fact: Fact) -> list[Triple]:
    """Return edges to the globs of the files that a rule applies to."""
    globs = [one for one in fact.values.get("globs", ()) if _is_text(one) and one]
    if fact.values.get("always"):
        globs = [EVERY_FILE]
    return [("applies_to", fact.symbol, GLOB + one) for one in globs]


def _edges_of_mention(fact: Fact) -> list[Triple]:
    """Return edges to what a document mentions: a file, or a definition with a unique name."""
    name, what = str(fact.values.get("name", "")), str(fact.values.get("what", ""))
    return [("documents", "", target) for target in targets_of_mention(name, what)]


def targets_of_mention(name: str, what: str) -> list[str]:
    """Return the targets of the edges for a name that a document mentions.

    Args:
        name: the name as written in the document.
        what: its apparent kind: path, symbol, route or name.
    """
    if what == "path":
        return [FILE + name.lstrip("./")]
    if what == "symbol":
        return [CALLED + short_name(name.removesuffix("()").replace("@", "::"))]
    return [CALLED + key for key in list_keys(name)]


def _edges_of_operation(fact: Fact) -> list[Triple]:
    method, path = str(fact.values.get("method", "")), str(fact.values.get("path", ""))
    return [("serves", fact.symbol, ENDPOINT + format_endpoint(method, path))]


def _edges_of_mapping(fact: Fact) -> list[Triple]:
    table = fact.values.get("table")
    return [("maps_to", fact.symbol, TABLE + table)] if _is_text(table) else []


def _edges_of_environment(fact: Fact) -> list[Triple]:
    """Return the edge to an environment variable, from the setting it fills if that is known."""
    of, key = fact.values.get("setting"), fact.values.get("key")
    source = OWN_SETTING + of if _is_text(of) else fact.symbol
    return [("configured_by", source, ENV + key)] if _is_text(key) else []


def _is_text(value: object) -> TypeGuard[str]:
    return isinstance(value, str)


def _is_class(name: str) -> bool:
    return name[:1].isupper() or "\\" in name


OF_FACTS: Final[Mapping[str, Callable[[Fact], list[Triple]]]] = {
    "declares": _edges_of_signature,
    "imports": _build_rule("imports"),
    "extends": _build_rule("extends"),
    "implements": _build_rule("implements"),
    "uses_trait": _build_rule("uses_trait"),
    "calls": _edges_of_call,
    "creates_object": _build_rule("makes"),
    "takes": _build_rule("takes"),
    "dispatches": _build_rule("dispatches"),
    "fires": _build_rule("fires"),
    "listens_to": _build_two_ended_rule("listens_to", "listener", "event"),
    **dict.fromkeys(EVENTS, of_event),
    "observes": _build_two_ended_rule("observes", "observer", "model"),
    "policy_of": _build_two_ended_rule("authorizes", "policy", "model"),
    "authorizes": _edges_of_authorization,
    "defines_ability": _edges_of_ability,
    "binds": _build_two_ended_rule("binds", "abstract", "concrete"),
    "queries_table": _build_rule("queries_table", TABLE, "table"),
    "configured_by": _build_rule("configured_by", CONFIG, "key"),
    "reads_env": _edges_of_environment,
    "schema": _edges_of_table_statement,
    "relation": _edges_of_model_relation,
    "guards": _edges_of_guard,
    "applies_to": _edges_of_applied_rule,
    "mentions": _edges_of_mention,
    "operation": _edges_of_operation,
    "eloquent_class": _edges_of_mapping,
    "depends_on": _build_rule("depends_on", PACKAGE, "package"),
    "changed_by": _build_two_ended_rule("changed_by", "file", "run"),
}
