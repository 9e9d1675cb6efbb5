from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from rag_assets.plugins.registry import installed_systems
from rag_assets.search.model import SearchRequest
from rag_assets.search.progress import ResolvedSearch
from rag_assets.storage.catalog.builds.generations import Generation
from rag_assets.tenants.model import Tenant
from tests.distributions import distribution

NOW = datetime(2026, 3, 1, tzinfo=UTC)
SMALL = "openai/text-embedding-3-small@1536"


@pytest.fixture
def tenant(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Tenant]:
    """Return a tenant whose profile has a threshold for one embedder."""
    monkeypatch.syspath_prepend(tmp_path)
    installed_systems.cache_clear()
    (tmp_path / "tides_system.py").write_text(
        "from rag_assets.plugins.system import Profile, System\n"
        "THRESHOLDS = {'openai/text-embedding-3-small': 0.75}\n"
        "SYSTEM = System(name='tides', profile=Profile(defaults={}, thresholds=THRESHOLDS))\n"
    )
    distribution(tmp_path, "tides-package", {"tides": "tides_system:SYSTEM"})
    yield Tenant.from_config({"id": "acme", "profile": "tides"})
    installed_systems.cache_clear()


def serving(embedder_id: str) -> Generation:
    return Generation(1, "k", "rag-index-3", "u", embedder_id, {}, 3, "SERVING", NOW, None)


@pytest.mark.parametrize(
    ("given", "embedder_id", "threshold"),
    [(None, SMALL, 0.75), (0.2, SMALL, 0.2), (-1.0, SMALL, -1.0), (None, "local/mini@384", None)],
)
def test_a_threshold_is_the_requests_or_the_profiles_for_the_serving_embedder(
    tenant: Tenant, given: float | None, embedder_id: str, threshold: float | None
) -> None:
    request = SearchRequest(query="tide", min_score=given, mode="text")
    found = ResolvedSearch.resolve(tenant, request, request.query, serving(embedder_id))
    assert found.min_cosine == threshold
    assert found.needs_vector is (threshold is not None)


def test_without_a_serving_generation_there_is_no_threshold(tenant: Tenant) -> None:
    resolved = ResolvedSearch.resolve(tenant, SearchRequest(query="tide"), "tide", None)
    assert resolved.min_cosine is None
