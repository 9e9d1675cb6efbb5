"""Without a provider's key, questions report it, captures are staged, and checkpoints wait."""

from __future__ import annotations

import pytest
from pydantic import SecretStr

from rag_assets.billing.key_ring import KeyRing
from tests.embedding_server import EmbeddingServer
from tests.installation import Installation
from tests.integration.systems.experience.conftest import Learning


@pytest.fixture
def keyless(learning: Learning, installed: Installation, server: EmbeddingServer) -> Learning:
    """Create a tenant whose provider has no key."""
    embedder = {
        "provider": "openai",
        "base_url": server.url,
        "model": "text-embedding-3-small",
        "dimensions": 16,
        "price": {"per_million": 1},
    }
    installed.configure(learning.tenant, embedder=embedder)
    return learning


def test_a_checkpoint_waits_for_a_key_and_says_so(
    keyless: Learning, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY")
    project = keyless.project()
    keyless.failure(project, "cosine 0.90", "Steps.")
    checkpoint = keyless.checkpoint(project)
    keyless.driver.run_once(keyless.tenant)
    progress = keyless.ok("GET", f"/checkpoints/{checkpoint}")
    assert (progress["state"], progress["staged"], progress["embedded"]) == ("waiting", 1, 0)
    assert "key" in progress["error"]
    for path, body in (
        ("/failure", {"failure_description": "x"}),
        ("/task", {"task_description": "x"}),
    ):
        answer = keyless.send("POST", path, body)
        assert answer.status_code == 402, answer.text
    basic = {"task": {"description": "x"}, "basic_context": "You build the harbour."}
    context = keyless.ok("POST", "/context", basic)
    assert (context["context"], context["reason"]) == ("You build the harbour.", "no-key")
    assert (context["patterns"], context["query_id"]) == ([], None)
    keyless.failure(project, "cosine 0.80", "Staged meanwhile.")

    session = keyless.driver.session
    ref = session.catalog.tenants.get(keyless.tenant).ref
    KeyRing(session.catalog, session.settings).set(ref, "openai", SecretStr("sk-of-a-test-012345"))
    session.catalog.quarantine.retry_transient_failures(ref)  # as `rag-assets keys set` does
    keyless.driver.sync(keyless.tenant)
    progress = keyless.ok("GET", f"/checkpoints/{checkpoint}")
    assert (progress["state"], progress["embedded"], progress["error"]) == ("done", 1, None)
    assert [one["solution"] for one in keyless.ask("x")] == ["Steps."]
