"""The settings of a workspace, set over HTTP and in tenants.yaml, and their effects."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import jwt
import pytest
from sqlalchemy import text
from starlette.testclient import TestClient

from rag_assets.api.app import build_app
from rag_assets.api.backend import Backend
from rag_assets.api.rate_limits import Rate
from rag_assets.api.settings import JwtSettings, ServiceSettings
from rag_assets.billing.chat_models import ChatModels
from rag_assets.common.errors import NoVectorBackend
from rag_assets.common.private_endpoints import PrivateEndpoints
from rag_assets.plugins.registry import installed_systems
from rag_assets.privacy.masker import Masker
from rag_assets.search import AsyncRetriever
from rag_assets.storage.blobs.store import open_blobs
from rag_assets.storage.catalog.builds.generations import Generation
from rag_assets.systems.workspace.settings import SettingsDraft, SettingsService
from tests.databases import as_service
from tests.driving import Driver
from tests.installation import FAST, Installation

SECRET = "an example secret of more than 32 bytes"
SETTINGS = ServiceSettings(
    jwt=JwtSettings(secret=SECRET),
    rate=Rate.parse("100000/minute"),
    attempts=Rate.parse("100000/minute"),
)


class Workspace:
    """A workspace with one document, and requests about it."""

    def __init__(
        self, tenant: str, client: TestClient, installation: Installation, driver: Driver
    ) -> None:
        self.id, self._client = tenant, client
        self._installation, self.driver = installation, driver
        self.catalog = driver.session.catalog

    def send(self, method: str, path: str, body: Any = None, role: str = "admin") -> Any:
        claims = {"sub": "ann", "tenants": [self.id], "role": role, "exp": int(time.time()) + 3_000}
        headers = {"Authorization": f"Bearer {jwt.encode(claims, SECRET)}"}
        return self._client.request(method, path, json=body, headers=headers)

    def patch(self, **settings: Any) -> Any:
        answer = self.send("PATCH", "/rag/settings", settings)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def ask(self) -> dict[str, Any]:
        answer = self.send("POST", "/rag/query", {"query": "valve", "mode": "text"})
        assert answer.status_code == 200, answer.text
        found: dict[str, Any] = answer.json()
        return found

    def reconcile(self) -> None:
        """Reconcile the catalog, as the sensor does every few seconds."""
        self.driver.session.reconcile()

    def sync(self) -> None:
        self.driver.sync(self.id)


@pytest.fixture(scope="module")
def client(shared_installation: Installation, driver: Driver) -> Iterator[TestClient]:
    session = shared_installation.session()
    catalog = as_service(session)
    retriever = AsyncRetriever(catalog, session.store, session.embedders)
    chat_models = ChatModels(catalog, session.settings)
    blobs = open_blobs(session.settings)
    backend = Backend(catalog, session.store, retriever, SETTINGS, chat_models, blobs=blobs)
    routers = [*installed_systems().load("routers").values()]
    with TestClient(build_app(backend, routers=routers)) as made:
        yield made


@pytest.fixture
def workspace(
    request: pytest.FixtureRequest,
    client: TestClient,
    shared_installation: Installation,
    driver: Driver,
) -> Workspace:
    tenant = f"ws-{abs(hash(request.node.name)) % 10**8}"
    folder = shared_installation.home.parent / "sources" / tenant
    folder.mkdir(parents=True)
    (folder / "valves.md").write_text("# Valves\n\nThe valve closes to the right.\n")
    source = {"name": "pages", "root": str(folder)}
    shared_installation.add_tenant(tenant, **FAST, profile="workspace", sources=[source])
    made = Workspace(tenant, client, shared_installation, driver)
    made.sync()
    return made


def test_settings_lie_over_tenants_yaml(workspace: Workspace) -> None:
    shown = workspace.send("GET", "/rag/settings").json()
    assert shown["enabled"]
    assert shown["own"] == []
    assert shown["resolved_comment_days"] == 30
    assert shown["vector_backend"] == "elasticsearch"
    shown = workspace.patch(resolved_comment_days=7)
    assert (shown["resolved_comment_days"], shown["own"]) == (7, ["resolved_comment_days"])
    assert shown["updated_by"] == "jwt:ann"
    assert shown["updated_at"]
    workspace.reconcile()
    assert workspace.send("GET", "/rag/settings").json() == shown
    # Other settings of the operator still apply, and null restores the operator's value.
    workspace._installation.configure(workspace.id, workspace={"resolved_comment_days": 5})
    workspace.reconcile()
    assert workspace.send("GET", "/rag/settings").json()["resolved_comment_days"] == 7
    shown = workspace.patch(resolved_comment_days=None)
    assert (shown["resolved_comment_days"], shown["own"]) == (5, [])


def test_a_workspace_that_is_off_neither_answers_nor_indexes(workspace: Workspace) -> None:
    assert workspace.ask()["hits"]
    assert workspace.patch(enabled=False)["enabled"] is False
    found = workspace.ask()
    assert (found["disabled"], found["hits"]) == (True, [])
    told = workspace.send("POST", "/rag/answer", {"query": "valve"}).json()
    assert (told["disabled"], told["answer"]) == (True, "")
    assert "admins to switch it on" in told["notice"]
    workspace.reconcile()
    assert workspace.ask()["disabled"], "the sensor of tenants.yaml has switched it on"
    record = workspace.catalog.tenants.get(workspace.id)
    assert (record.state, record.configured_state) == ("DISABLED", "ACTIVE")

    assert workspace.patch(enabled=True)["enabled"] is True
    assert workspace.ask()["hits"]
    status = workspace.send("GET", "/rag/status").json()
    assert status["queue_depth"] == 1, "switching on queues a full reindex"
    requested = workspace.catalog.events.latest(workspace.id, kind="reindex_requested")[0].payload
    assert requested["scope"] == "tenant"
    assert requested["by"] == "jwt:ann"


def test_what_the_operator_has_disabled_stays_off(workspace: Workspace) -> None:
    workspace.patch(enabled=False)
    workspace._installation.configure(workspace.id, enabled=False)
    workspace.reconcile()
    refused = workspace.send("PATCH", "/rag/settings", {"enabled": True})
    assert refused.status_code == 409
    assert refused.json()["type"].endswith(":configured-by-operator")
    workspace._installation.configure(workspace.id, enabled=True)
    workspace.reconcile()
    assert workspace.ask()["disabled"], "its application has switched it off"
    said = workspace._installation.command("tenants", "enable", workspace.id)
    assert said.code == 0
    assert "stays off: its application has switched it off" in said.out
    assert f"rag-assets panel {workspace.id}" in said.out
    refused = workspace._installation.command("sync", workspace.id)
    assert "was switched off by its application" in refused.err
    workspace.patch(enabled=True)
    assert not workspace.ask()["disabled"]


def test_a_model_waits_until_the_workspace_is_indexed_again(workspace: Workspace) -> None:
    before = workspace.catalog.generations.serving(workspace.id)
    assert before is not None
    shown = workspace.patch(provider="local")
    assert shown["pending_model"]["provider"] == "local"
    assert shown["provider"] == "deterministic"
    workspace.reconcile()
    workspace.sync()
    same = workspace.catalog.generations.serving(workspace.id)
    assert same is not None
    assert same.number == before.number

    asked = workspace.send("POST", "/rag/reindex", {"scope": "tenant"})
    assert asked.status_code == 202
    shown = workspace.send("GET", "/rag/settings").json()
    assert (shown["provider"], shown["pending_model"]) == ("local", None)
    assert workspace.ask()["hits"], "the former build answers until the new one is complete"
    workspace.sync()
    after = workspace.catalog.generations.serving(workspace.id)
    assert after is not None
    assert after.number > before.number
    assert after.embedder_id.startswith("local/")
    assert workspace.ask()["hits"]


def test_a_model_of_the_operators_waits_as_well(workspace: Workspace) -> None:
    """A model in tenants.yaml starts no build by itself, because that would cost money."""
    before = serving_of(workspace)
    other = {"provider": "deterministic", "dimensions": 16}

    def configured(embedder: dict[str, Any]) -> dict[str, Any]:
        workspace._installation.configure(workspace.id, embedder=embedder)
        workspace.reconcile()
        workspace.sync()
        assert workspace.ask()["hits"]
        shown: dict[str, Any] = workspace.send("GET", "/rag/settings").json()
        return shown

    present = workspace.catalog.tenants.get(workspace.id).config["embedder"]
    shown = configured(other)
    assert (shown["pending_model"]["dimensions"], shown["own"]) == (16, [])
    assert shown["dimensions"] != 16
    assert serving_of(workspace).number == before.number, "the former model goes on"
    assert workspace.send("GET", "/rag/status").json()["pending_model"] == shown["pending_model"]
    [event] = workspace.catalog.events.latest(workspace.id, kind="settings_changed")
    assert event.payload == {"by": "operator", "changed": ["embedder"]}
    # A model with the same vectors takes effect immediately, and so does the return.
    assert configured(present)["pending_model"] is None
    assert configured({**present, "seconds_per_text": 0.001})["pending_model"] is None
    in_force = workspace.catalog.tenants.get(workspace.id).config["embedder"]
    assert in_force["seconds_per_text"] == 0.001
    assert len(workspace.catalog.generations.live(workspace.id)) == 1

    # The application's model waits instead of the operator's; without it the operator's waits
    # again.
    assert configured(other)["pending_model"]["dimensions"] == 16
    assert workspace.patch(provider="local")["pending_model"]["provider"] == "local"
    assert workspace.patch(provider=None)["pending_model"]["dimensions"] == 16
    asked = workspace.send("POST", "/rag/reindex", {"scope": "workspace"})
    assert asked.status_code == 202
    shown = workspace.send("GET", "/rag/settings").json()
    assert (shown["pending_model"], shown["dimensions"]) == (None, 16)
    assert workspace.ask()["hits"], "the former build answers until the new one is complete"
    workspace.sync()
    after = serving_of(workspace)
    assert (after.number > before.number, after.dimensions) == (True, 16)


def test_switching_on_takes_a_model_that_waits(workspace: Workspace) -> None:
    before = serving_of(workspace)
    other = {"provider": "deterministic", "dimensions": 16}
    workspace._installation.configure(workspace.id, embedder=other)
    workspace.reconcile()
    assert workspace.patch(enabled=False)["pending_model"]["dimensions"] == 16
    shown = workspace.patch(enabled=True)
    assert (shown["pending_model"], shown["dimensions"]) == (None, 16)
    assert workspace.ask()["hits"]
    workspace.sync()
    assert serving_of(workspace).number > before.number


def test_switched_on_by_the_operators_default_it_is_indexed_again_as_well(
    workspace: Workspace,
) -> None:
    workspace.patch(enabled=False)
    assert workspace.patch(provider="local")["pending_model"]["provider"] == "local"
    shown = workspace.patch(enabled=None)
    assert (shown["enabled"], shown["pending_model"], shown["provider"]) == (True, None, "local")
    assert waiting(workspace) == 1
    [requested] = workspace.catalog.events.latest(workspace.id, kind="reindex_requested")
    assert (requested.payload["scope"], requested.payload["by"]) == ("tenant", "jwt:ann")
    # It is already enabled, so there is nothing to do.
    workspace.sync()
    workspace.patch(enabled=True)
    assert waiting(workspace) == 0


def test_what_is_refused_of_a_workspace_that_is_off_changes_nothing(workspace: Workspace) -> None:
    before = workspace.patch(enabled=False)
    refused = workspace.send(
        "PATCH", "/rag/settings", {"enabled": True, "embedding_model": "nothing-known"}
    )
    assert refused.status_code == 422
    assert workspace.send("GET", "/rag/settings").json() == before
    assert waiting(workspace) == 0
    assert workspace.catalog.events.latest(workspace.id, kind="reindex_requested") == []


def waiting(workspace: Workspace) -> int:
    """Return the number of documents that wait to be indexed."""
    query = text(
        "SELECT count(*) FROM rag_catalog.documents WHERE tenant = :t AND status = 'PROCESSING'"
    )
    with workspace.catalog.database.begin() as connection:
        return int(connection.scalar(query, {"t": workspace.id}) or 0)


def test_a_model_counts_at_once_where_nothing_was_indexed(
    client: TestClient, shared_installation: Installation, driver: Driver
) -> None:
    tenant, other = "ws-unused", {"provider": "deterministic", "dimensions": 16}
    shared_installation.add_tenant(tenant, **FAST, profile="workspace")
    unused = Workspace(tenant, client, shared_installation, driver)
    unused.reconcile()
    shared_installation.configure(tenant, embedder=other)
    unused.reconcile()
    shown = unused.send("GET", "/rag/settings").json()
    assert (shown["pending_model"], shown["dimensions"]) == (None, 16)
    assert (shown["updated_by"], shown["own"]) == (None, [])


def test_a_model_counts_at_once_where_all_that_came_failed(
    client: TestClient, shared_installation: Installation, driver: Driver
) -> None:
    tenant, keyless = "ws-keyless", {"provider": "openai", "model": "text-embedding-3-large"}
    folder = shared_installation.home.parent / "sources" / tenant
    folder.mkdir(parents=True)
    source = {"name": "pages", "root": str(folder)}
    given = {**FAST, "embedder": keyless, "sources": [source]}
    shared_installation.add_tenant(tenant, **given, profile="workspace")
    begun = Workspace(tenant, client, shared_installation, driver)
    begun.sync()
    (folder / "valves.md").write_text("# Valves\n\nThe valve closes to the right.\n")
    begun.sync()
    assert begun.catalog.generations.serving(tenant) is not None, "a build that holds nothing"
    assert begun.send("GET", "/rag/status").json()["failed"] == 1
    assert begun.patch(embedding_model="text-embedding-3-small")["pending_model"] is None

    begun.patch(embedding_model=None)
    shared_installation.configure(tenant, embedder=FAST["embedder"])
    begun.reconcile()
    assert begun.send("GET", "/rag/settings").json()["pending_model"] is None
    begun.sync()
    assert [hit["title"] for hit in begun.ask()["hits"]] == ["Valves"]


def serving_of(workspace: Workspace) -> Generation:
    serving = workspace.catalog.generations.serving(workspace.id)
    assert serving is not None
    return serving


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({"provider": "ollama", "embedding_model": "x", "base_url": "http://10.0.0.9:1/v1"}, "url"),
        ({"provider": "openai", "base_url": "https://127.0.0.1:9/v1"}, "base_url"),
        ({"embedding_model": "nothing-known"}, "embedding_model"),
        ({"provider": "local", "dimensions": 128}, "384 dimensions, not 128"),
        (
            {"provider": "local", "embedding_model": "multilingual-e5-small", "dimensions": 128},
            "384 dimensions, not 128",
        ),
        ({"provider": "anthropic"}, "provider"),
        ({"resolved_comment_days": -1}, "resolved_comment_days"),
        ({"colour": "red"}, "field"),
        ({"embedding_model": "ghp_" + "a1B2c3D4e5" * 4}, "credential"),
    ],
)
def test_settings_that_do_not_fit_change_nothing(
    workspace: Workspace, settings: dict[str, Any], named: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = workspace.send("GET", "/rag/settings").json()
    refused = workspace.send("PATCH", "/rag/settings", settings)
    assert refused.status_code == 422
    assert named in refused.text
    assert workspace.send("GET", "/rag/settings").json() == before


def test_only_admins_of_a_workspace_see_settings(workspace: Workspace) -> None:
    assert workspace.send("GET", "/rag/settings", role="member").status_code == 403
    assert workspace.send("PATCH", "/rag/settings", {}, role="member").status_code == 403


def test_a_back_end_that_is_not_there_changes_nothing(workspace: Workspace) -> None:
    masker = Masker(workspace.driver.scanner)
    service = SettingsService(workspace.catalog, PrivateEndpoints(), masker, None)
    before = service.get(workspace.id)
    with pytest.raises(NoVectorBackend):
        service.change(workspace.id, SettingsDraft(vector_backend="pgvector"), "ann")
    assert service.get(workspace.id) == before
    assert workspace.patch(vector_backend="pgvector")["vector_backend"] == "pgvector"


def test_other_tenants_have_no_settings(
    client: TestClient, shared_installation: Installation, driver: Driver
) -> None:
    shared_installation.add_tenant("plain-documents", **FAST)
    plain = Workspace("plain-documents", client, shared_installation, driver)
    plain.reconcile()
    refused = plain.send("GET", "/rag/settings")
    assert refused.status_code == 409
    assert refused.json()["type"].endswith(":no-workspace")
