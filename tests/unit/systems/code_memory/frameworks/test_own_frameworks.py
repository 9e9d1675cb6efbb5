"""A framework that a tenant adds in its configuration."""

from __future__ import annotations

from typing import Any

import pytest

from rag_assets.common.errors import ConfigurationError
from rag_assets.ingest.chunking.chunk_set import chunk_document
from rag_assets.ingest.parsing.model import ParsedText
from rag_assets.pipeline.recipes import compute_config_key
from rag_assets.tenants.model import Tenant
from tests.unit.systems.code_memory.frameworks.test_frameworks import derive, names

TEXT = """from acme import web

@web.endpoint("GET", "/orders/{id}")
def show_order(id):
    return id
"""
ACME = {
    "name": "acme-web",
    "languages": ["python"],
    "markers": ["acme import web"],
    "routers": {"called": ["web"]},
    "routes": [{"annotations": {"endpoint": ""}, "method": "0", "path": "1"}],
}


def tenant(*frameworks: dict[str, Any], **more: Any) -> Tenant:
    config = {"id": "acme", "chunker": {"chunker": "code"}, "frameworks": frameworks, **more}
    return Tenant.from_config(config)


def test_its_routes_have_documents() -> None:
    files = {"orders.py": TEXT}
    assert names(derive(files)) == []
    found = derive(files, tenant(ACME).own_frameworks_json)
    assert names(found) == ["route:GET /orders/{id}"]
    [document] = found.documents
    assert "framework: acme-web" in document.lines
    leads = {(statement.kind, statement.target) for statement in document.statements}
    assert ("routes_to", "orders.show_order") in leads


def test_it_replaces_the_built_in_one_of_its_name() -> None:
    files = {
        "app.py": "from flask import Flask\napp = Flask(__name__)\n\n"
        "@app.route('/orders')\ndef orders():\n    return []\n"
    }
    assert names(derive(files)) == ["route:GET /orders"]
    own = tenant({"name": "flask", "languages": ["python"], "markers": ["from flask"]})
    assert names(derive(files, own.own_frameworks_json)) == []


def test_a_tenants_texts_are_read_again_when_they_change_and_no_others_are() -> None:
    parsed = ParsedText(TEXT, (), "orders.py", "text/x-python")
    tenants = tenant(), tenant(ACME), tenant({**ACME, "markers": ["acme"]})
    keys = {compute_config_key(one, "deterministic") for one in tenants}
    assert len(keys) == len(tenants)
    sets = [
        chunk_document(
            parsed,
            one.chunk_parameters(source="repo", source_type="code", media_type="text/x-python"),
            parsed_digest="digest",
        )
        for one in tenants
    ]
    assert len({one.key for one in sets}) == len(sets)
    assert len({one.digest for one in sets}) == 1, "the passages are the same: no vector is made"
    prose = [
        tenant(*one, chunker={"chunker": "heading"}).chunk_parameters(
            source="files", source_type="file", media_type="text/markdown"
        )
        for one in ((), (ACME,))
    ]
    assert prose[0] == prose[1]


@pytest.mark.parametrize(
    ("frameworks", "message"),
    [
        (
            [{**ACME, "languages": ["cobol"]}],
            "'cobol' is not a supported language: use one of csharp",
        ),
        ([{**ACME, "pages": [{"path": "("}]}], "'(' is not a valid regular expression"),
        ([{**ACME, "pages": [{"path": "/(.*)"}]}], "has no group `route`"),
        (
            [{**ACME, "resources": {"calls": {"all": "many"}, "actions": {}}}],
            "`actions` has no entry",
        ),
        ([{**ACME, "handlers": "spring"}], "frameworks.0.handlers"),
        ([{**ACME, "rout": []}], "frameworks.0.rout"),
        ([{**ACME, "name": "Acme Web"}], "frameworks.0.name"),
        ([ACME, ACME], "two frameworks named 'acme-web'"),
        ([{**ACME, "name": f"acme-{number}"} for number in range(21)], "frameworks"),
    ],
)
def test_what_is_wrong_is_named(frameworks: list[dict[str, Any]], message: str) -> None:
    with pytest.raises(ConfigurationError) as error:
        tenant(*frameworks)
    assert message in error.value.message
    assert "acme" in error.value.message
