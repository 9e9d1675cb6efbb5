"""Validation errors are described without Pydantic's terms."""

from __future__ import annotations

from typing import Any

import pytest

from rag_assets.common.errors import ConfigurationError
from rag_assets.tenants.model import Tenant

SOURCE = {"name": "files", "type": "files", "root": "/files"}


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ({"chunk_size": 5}, "chunk_size: there is no such field"),
        ({"sources": [{"type": "files"}]}, "sources.0.name: this field is needed"),
        ({"sources": [{**SOURCE, "include": "*.md"}]}, "sources.0.include: it must be a list"),
        (
            {"sources": [{**SOURCE, "include": ["["]}]},
            "sources.0.include: the glob '[' is empty or malformed",
        ),
        ({"sources": [{**SOURCE, "include": []}]}, "sources.0.include: it must not be empty"),
        (
            {"sources": [{**SOURCE, "type": "ftp"}]},
            "sources.0.type: choose one of: files, records, uploads",
        ),
        (
            {"sources": [{**SOURCE, "type": 5}]},
            "sources.0.type: choose one of: files, records, uploads",
        ),
        ({"sources": ["docs"]}, "sources.0: it must be a mapping"),
        ({"chunker": "recursive"}, "chunker: it must be a mapping"),
        ({"parser": {"ocr": "maybe"}}, "parser.ocr: it must be true or false"),
        ({"parser": {"seconds": 0}}, "parser.seconds: it must be greater than 0"),
        ({"parser": {"memory_mb": 1}}, "parser.memory_mb: it must be 256 or more"),
        ({"retrieval": {"top_k": "many"}}, "retrieval.top_k: it must be a whole number"),
        ({"id": "A b"}, "id: it may contain only a-z in lower case, digits, and single . _ -"),
        ({"id": "a" * 64}, "id: it is too long: 63 characters at most"),
    ],
)
def test_a_problem_names_its_place(config: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        Tenant.from_config({"id": "acme", **config})
    assert f": {said}" in refused.value.message
