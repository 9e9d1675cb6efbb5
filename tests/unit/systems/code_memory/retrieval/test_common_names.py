"""Uses of a method with a common name, whose candidates are compared once and not at each place."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from rag_assets.systems.code_memory.catalog.found_relations import FoundNameUses, FoundSymbol
from rag_assets.systems.code_memory.retrieval import uses
from rag_assets.systems.code_memory.retrieval.nodes import build_node
from rag_assets.systems.code_memory.retrieval.uses import find_uses_of_nodes
from rag_assets.systems.code_memory.retrieval.view import RelationView
from rag_assets.systems.code_memory.symbols.model import NameUse, NameUses

FILES = 30


def _symbol(number: int) -> FoundSymbol:
    name, uri = f"app.v{number}.View{number}.get", f"repo/app/v{number}.py"
    place = (f"d{number}", uri, "repo", "s", "code")
    return FoundSymbol(name, "method", True, 1, 3, "hash", *place, {}, name)


def _view() -> RelationView:
    symbols = {f"repo/app/v{number}.py": _symbol(number) for number in range(FILES)}
    rows = [
        FoundNameUses("get", "", symbol.document_id, uri, "repo", "s", "code")
        for uri, symbol in symbols.items()
    ]
    view: Any = SimpleNamespace(
        find_name_uses=lambda *_: (rows, False),
        list_definitions=lambda uris: [symbols[uri] for uri in uris],
        find_edges_of_names=lambda *_: SimpleNamespace(edges=()),
        find_scip_edges=lambda _: (),
        find_implementations=lambda *_: (),
    )
    return cast("RelationView", view)


def test_receivers_named_after_the_class_are_certain_at_the_cost_of_one_comparison(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    calls = 0
    get_owner = uses._get_owner

    def counted(name: str) -> str:
        nonlocal calls
        calls += 1
        return get_owner(name)

    places = NameUses(
        tuple(
            NameUse("call", line, receiver)
            for line, receiver in enumerate(("view3", "other", "view4"), start=5)
        )
    )
    monkeypatch.setattr(uses, "parse_uses", lambda _: places)
    monkeypatch.setattr(uses, "_get_owner", counted)
    monkeypatch.setattr(uses._UseResolver, "_get_rank_key", lambda *_: (0, 0, 0))
    found = find_uses_of_nodes(_view(), [build_node(_symbol(3))])
    assert {(use.receiver, use.why) for use in found.certain} == {("view3", "receiver")}
    assert {use.receiver for use in found.possible} == {"other", "view4"}
    assert {use.candidates for use in found.possible} == {FILES}
    assert calls <= FILES + 5
