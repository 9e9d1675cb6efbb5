"""A tenant's settings of the code chunker."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rag_assets.common.errors import ConfigurationError
from rag_assets.ingest.parsing.media_types import MARKDOWN
from rag_assets.tenants.chunkers import ChunkerConfig
from rag_assets.tenants.model import Tenant
from tests.chunking import require_levels


def test_the_path_of_a_document_is_a_hint_for_the_code_chunker() -> None:
    names = {"id": "a", "profile": "code-memory", "organization": "o", "project": "p"}
    tenant = Tenant.from_config({**names, "sources": [{"name": "repo", "root": "/tmp"}]})
    of = {"source": "repo", "source_type": "file", "media_type": MARKDOWN}
    usual = tenant.chunk_parameters(**of)
    assert tenant.chunk_parameters(**of, path="docs/guide.md") == usual
    listed = tenant.chunk_parameters(**of, path="docs/KNOWN_BUGS.md")
    assert listed == replace(usual, path_hint="known_bug")
    assert {**listed.identity()} == {**usual.identity(), "place": "known_bug"}


@pytest.mark.parametrize(
    ("levels", "below_three", "below_four"), [(None, 2, 1), (3, 2, 1), (2, 1, 1), (6, 2, 2)]
)
def test_documents_are_cut_at_the_levels_that_a_tenant_chooses(
    levels: int | None, below_three: int, below_four: int
) -> None:
    require_levels("code", levels, below_three, below_four)


def test_an_unknown_level_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="levels is 10"):
        ChunkerConfig.model_validate({"chunker": "code", "levels": 10})
