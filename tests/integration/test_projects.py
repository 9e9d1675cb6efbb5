"""Projects and organizations: created by applications, found by name, with shared keys."""

from __future__ import annotations

import asyncio
import io
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import jwt
import psycopg
import pytest
from pydantic import SecretStr
from ruamel.yaml import YAML

from rag_assets.api.authentication import Authenticator
from rag_assets.api.identity import Forbidden, Identity
from rag_assets.api.settings import JwtSettings
from rag_assets.billing.key_ring import KeyRing
from rag_assets.common.errors import (
    ConfigurationError,
    ConfiguredByOperator,
    InvalidRequest,
    KeyUnreadable,
    NoProviderKey,
    UnknownProject,
)
from rag_assets.pipeline.tenancy import Projects
from rag_assets.storage.catalog.accounts.credentials import TokenReader
from rag_assets.storage.catalog.accounts.usage import today
from rag_assets.storage.catalog.catalog import Catalog
from rag_assets.storage.catalog.tenants.settings import OrganizationRef
from rag_assets.storage.catalog.tenants.table import TenantRecord
from rag_assets.tenants.projects import Project, ProjectSettings
from tests.driving import Driver
from tests.embedding_server import EmbeddingServer, Status, embedding_server
from tests.installation import FAST, CommandResult, Installation

PROFILE = "team-guidelines"
KEY = "sk-proj-planted0123456789abcdefWXYZ"
OTHER = "sk-proj-planted0123456789abcdefOTHR"
SECRET = "an example secret of more than 32 bytes"
NOTHING = ProjectSettings()


@pytest.fixture(scope="module")
def server() -> Iterator[EmbeddingServer]:
    with embedding_server(dimensions=1536) as started, pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAG_ASSETS_PRIVATE_ENDPOINTS", "127.0.0.1")
        yield started


@pytest.fixture(scope="module")
def made(shared_installation: Installation, server: EmbeddingServer) -> Installation:
    """Create an installation whose new projects use a gateway."""
    begin_with(
        shared_installation,
        embedder={
            "providers": [
                {"provider": "openai", "base_url": server.url, "price": {"per_million": 1}},
                {"provider": "gemini", "base_url": server.origin, "price": {"per_million": 1}},
            ]
        },
    )
    return shared_installation


def begin_with(installation: Installation, **beginning: Any) -> None:
    path = installation.home / "tenants.yaml"
    document = YAML().load(path.read_text()) if path.exists() else {"tenants": []}
    document["projects"] = beginning
    with path.open("w") as stream:
        YAML().dump(document, stream)


def projects(installation: Installation) -> Projects:
    session = installation.session()
    return Projects(session.catalog, session.settings)


def put(installation: Installation, organization: str, project: str) -> TenantRecord:
    named = Project(PROFILE, organization, project)
    return projects(installation).put(named, NOTHING).record


def ring(installation: Installation) -> KeyRing:
    session = installation.session()
    return KeyRing(session.catalog, session.settings)


def read(installation: Installation, record: TenantRecord, provider: str = "openai") -> str:
    return ring(installation).credentials(record.ref, provider, None)().get_secret_value()


def piped(
    installation: Installation, monkeypatch: pytest.MonkeyPatch, given: str, *arguments: str
) -> CommandResult:
    monkeypatch.setattr(sys, "stdin", io.StringIO(given))
    return installation.command(*arguments)


# -- projects


def test_a_project_is_made_once_and_changed_in_place(made: Installation) -> None:
    options = ("--name", "Web", "--chat-model", "gpt-4o", "--json")
    first = made.command("projects", "put", "Acme & Sons", "42", *options).json
    assert (first["created"], first["changed"], first["origin"]) == (True, True, "api")
    assert first["tenant"].startswith("acme-sons.42.")
    assert first["embedder"].startswith("openai/text-embedding-3-small@1536")
    again = made.command("projects", "put", "Acme & Sons", "42", *options).json
    assert (again["created"], again["changed"]) == (False, False)
    changed = made.command(
        "projects", "put", "Acme & Sons", "42", "--min-score", "0.5", "--per-month", "3", "--json"
    ).json
    assert (changed["tenant"], changed["changed"]) == (first["tenant"], True)
    assert (changed["name"], changed["min_score"]) == ("Web", 0.5)
    assert changed["caps"]["per_month"] == 3
    [listed] = made.command("projects", "list", "Acme & Sons", "--json").json["projects"]
    assert listed["chat_model"] == "gpt-4o"
    assert first["tenant"] in made.command("projects", "list").out
    tenants = made.command("tenants", "list", "--json").json["tenants"]
    assert {t["id"]: t["origin"] for t in tenants}[first["tenant"]] == "api"
    anew = made.command("projects", "put", "Acme & Sons", "42", "--anew", "--json").json
    assert (anew["tenant"], anew["name"], anew["min_score"]) == (first["tenant"], None, None)
    assert (anew["chat_model"], anew["caps"]["per_month"]) == ("gpt-4o", 3)


def test_wrong_settings_are_refused_with_the_field(made: Installation) -> None:
    for option, value in (
        ("--provider", "deterministic"),
        ("--min-score", "7"),
        ("--chat-model", "a b"),
    ):
        said = made.command("projects", "put", "wrong", "one", option, value)
        assert said.code == 1, said.out
        assert option[2:].replace("-", "_") in said.err
    said = made.command("projects", "put", "wrong", "one", "--profile", "documents")
    assert "are not projects" in said.err
    assert made.command("projects", "list", "wrong", "--json").json == {"projects": []}
    assert made.command("projects", "remove", "wrong", "one", "--yes").code == 1


def test_of_simultaneous_requests_one_makes_the_project(made: Installation) -> None:
    session = made.session()
    named = Project(PROFILE, "busy", "one")
    names = [f"name {number}" for number in range(12)]

    def make(name: str) -> tuple[str, int, bool]:
        done = Projects(session.catalog, session.settings).put(named, ProjectSettings(name=name))
        return done.record.id, done.record.incarnation, done.created

    with ThreadPoolExecutor(6) as pool:
        found = list(pool.map(make, names))
    assert sum(created for *_, created in found) == 1
    assert len({(id_, incarnation) for id_, incarnation, _ in found}) == 1
    record = projects(made).get(named)
    assert record.config["name"] in names


def test_an_id_that_is_in_use_is_not_taken(made: Installation) -> None:
    made.add_tenant("taken.web", **FAST)
    record = put(made, "taken", "web")
    assert record.id.startswith("taken.web.")
    assert put(made, "taken", "web").id == record.id
    session = made.session()
    assert session.catalog.tenants.get("taken.web").origin == "file"


def test_tenants_of_the_file_are_the_operators(made: Installation) -> None:
    mine = {"profile": PROFILE, "organization": "own", "project": "web", **FAST}
    made.add_tenant("mine", **mine)
    with pytest.raises(ConfiguredByOperator, match="tenant 'mine'"):
        put(made, "own", "web")
    session = made.session()
    session.reconcile()
    with pytest.raises(ConfiguredByOperator):
        put(made, "own", "web")
    found = projects(made).get(Project(PROFILE, "own", "web"))
    assert (found.id, found.origin) == ("mine", "file")
    made.add_tenant("twin", **mine)
    with pytest.raises(
        ConfigurationError, match="'mine' and 'twin' have the same organization and project"
    ):
        session.reconcile()
    made.configure("twin", project="other")
    session.reconcile()


def test_reconciliation_leaves_projects_alone(made: Installation) -> None:
    before = put(made, "left", "alone")
    session = made.session()
    assert made.command("tenants", "disable", before.id).code == 0
    assert put(made, "left", "alone").state == "DISABLED"
    session.reconcile()
    assert session.catalog.tenants.get(before.id).state == "DISABLED"
    assert made.command("tenants", "enable", before.id).code == 0
    session.reconcile()
    assert session.catalog.tenants.get(before.id) == before
    clash = {"profile": PROFILE, "organization": "left", "project": "alone"}
    for tenant_id, config in (("clash", clash), (before.id, {"profile": "documents"})):
        path = made.home / "tenants.yaml"
        kept = path.read_text()
        made.add_tenant(tenant_id, **config)
        with pytest.raises(ConfigurationError, match="was created over the API"):
            session.reconcile()
        path.write_text(kept)
    assert session.catalog.tenants.get(before.id) == before


def test_a_removed_project_can_be_made_again(made: Installation) -> None:
    before = put(made, "gone", "web")
    ring(made).set(before.ref, "openai", SecretStr(KEY))
    said = made.command("projects", "remove", "gone", "web", "--yes", "--json")
    assert said.json["removed"] is True, said.err
    after = put(made, "gone", "web")
    assert (after.id, after.incarnation > before.incarnation) == (before.id, True)
    with pytest.raises(NoProviderKey):
        read(made, after)


# -- organizations


def test_an_organizations_chat_model_is_its_projects(made: Installation) -> None:
    record = put(made, "models", "web")
    session = made.session()

    def provider() -> str:
        return session.embedders.tenant(session.catalog.tenants.get(record.id)).embedder.provider

    assert provider() == "openai"
    first = session.catalog.tenants.list_active_versions()[record.id]
    said = made.command("organizations", "put", "models", "--chat-model", "gemini-2.5-flash")
    assert "chat model gemini-2.5-flash" in said.out
    assert provider() == "gemini"
    # Whoever follows tenants notices.
    assert session.catalog.tenants.list_active_versions()[record.id] > first
    projects(made).put(Project(PROFILE, "models", "web"), ProjectSettings(chat_model="gpt-4o"))
    assert provider() == "openai"
    assert "chat_model" in projects(made).get(Project(PROFILE, "models", "web")).config
    reset = ProjectSettings(chat_model=None)
    projects(made).put(Project(PROFILE, "models", "web"), reset)
    assert provider() == "gemini"
    assert made.command("organizations", "put", "models", "--chat-model", "").code == 0
    assert provider() == "openai"


def test_an_organization_is_changed_only_where_something_differs(made: Installation) -> None:
    first = made.command("organizations", "put", "still", "--guidelines", "--json").json
    assert (first["rag_guidelines"], first["chat_model"]) == (True, None)
    again = made.command("organizations", "put", "still", "--guidelines", "--json").json
    assert again == first
    assert made.command("organizations", "put", "still", "--json").json == first
    off = made.command("organizations", "put", "still", "--no-guidelines", "--json").json
    assert off["rag_guidelines"] is False
    assert off["updated_at"] > first["updated_at"]
    put(made, "still", "one")
    listed = made.command("organizations", "list", "--json").json["organizations"]
    assert {each["id"]: each["projects"] for each in listed}["still"] == 1


def test_nothing_is_embedded_while_guidelines_are_off(
    made: Installation, server: EmbeddingServer, tmp_path: Path
) -> None:
    record = put(made, "switch", "web")
    driver = Driver(made)
    catalog = driver.session.catalog
    ring(made).set(OrganizationRef("switch"), "openai", SecretStr(KEY))
    rule = tmp_path / "locators.md"
    rule.write_text("# Locators\n\nUse data-testid attributes for locators.\n")
    assert made.command("uploads", "add", record.id, str(rule)).code == 0
    server.requests.clear()
    assert driver.sync(record.id)["embedded"] == 0
    assert not server.requests
    [document] = catalog.documents.all(record.id)
    assert "switched off" in (document.error_message or "")
    assert made.command("organizations", "put", "switch", "--guidelines").code == 0
    assert driver.sync(record.id)["embedded"] == 1
    assert server.requests
    hits = made.search(record.id, "locators", min_score=-1)
    assert [hit.uri.rpartition("/")[2] for hit in hits] == ["locators.md"]
    # Vectors by a hash are no answer to anything.
    assert not made.search(record.id, "locators")
    plain = tmp_path / "notes.txt"
    plain.write_text("Neither PDF nor Markdown nor DOCX: some words of prose.\n")
    assert made.command("uploads", "add", record.id, str(plain)).code == 1


def test_a_tenant_of_the_file_has_the_profiles_source(made: Installation) -> None:
    options = ("--profile", PROFILE, "--organization", "filed", "--project", "web")
    said = made.command("tenants", "add", "filed", *options, "--json")
    assert said.code == 0, said.err
    assert "sources" not in said.json["tenant"]
    tenants = made.command("tenants", "list", "--json").json["tenants"]
    [listed] = [tenant for tenant in tenants if tenant["id"] == "filed"]
    assert (listed["sources"], listed["origin"], listed["project"]) == (
        *(["guidelines"], "file", "web"),
    )
    assert made.command("tenants", "add", "unfiled", "--profile", PROFILE).code == 1


# -- keys


def test_a_project_uses_its_own_key_before_its_organizations(
    made: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two = put(made, "keys", "one"), put(made, "keys", "two")
    stranger = put(made, "strangers", "one")
    with pytest.raises(NoProviderKey):
        read(made, one)
    command = ("keys", "set", "keys", "openai", "--organization")
    assert piped(made, monkeypatch, KEY, *command).code == 0
    assert (read(made, one), read(made, two)) == (KEY, KEY)
    with pytest.raises(NoProviderKey):
        read(made, stranger)
    assert piped(made, monkeypatch, OTHER, "keys", "set", one.id, "openai").code == 0
    assert (read(made, one), read(made, two)) == (OTHER, KEY)
    assert ring(made).rotate() >= 2
    assert (read(made, one), read(made, two)) == (OTHER, KEY)
    listed = made.command("keys", "list", one.id, "--json").json["keys"]
    assert [(e["tenant"], e["organization"], e["shown"]) for e in listed] == [
        (one.id, None, "…OTHR"),
        ("", "keys", "…WXYZ"),
    ]
    shown = made.command("keys", "list", "keys", "--organization")
    assert "organization keys" in shown.out
    assert KEY not in shown.out
    # What is used is noted where it is.
    ring(made).record_use(two.ref, "openai", worked=True)
    ring(made).record_use(one.ref, "openai", worked=False)
    entries = {e.organization: e.worked for e in ring(made).entries(one.id)}
    assert entries == {None: False, "keys": True}
    assert made.command("keys", "remove", one.id, "openai").code == 0
    assert read(made, one) == KEY
    assert made.command("keys", "remove", "keys", "openai", "--organization").code == 0
    with pytest.raises(NoProviderKey):
        read(made, one)
    assert made.command("keys", "remove", "nobody", "openai", "--organization").code == 1


def test_a_key_that_is_moved_to_another_owner_does_not_open(made: Installation) -> None:
    one = put(made, "moved", "one")
    ring(made).set(OrganizationRef("moved"), "openai", SecretStr(KEY))
    put(made, "receives", "one")
    elsewhere = "UPDATE rag_catalog.provider_keys SET organization = 'receives'"
    to_a_tenant = (
        "UPDATE rag_catalog.provider_keys SET organization = NULL, tenant = 'receives.one'"
    )
    statements = (
        f"{elsewhere} WHERE organization = 'moved'",
        f"{to_a_tenant} WHERE organization = 'receives'",
    )
    assert read(made, one) == KEY
    for statement in statements:
        with psycopg.connect(made.environment["RAG_ASSETS_DATABASE_URL"]) as connection:
            connection.execute(statement.encode())
        with pytest.raises(KeyUnreadable, match="is damaged"):
            read(made, projects(made).get(Project(PROFILE, "receives", "one")))


def test_a_key_is_tested_by_one_small_call(
    made: Installation, server: EmbeddingServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    record = put(made, "tested", "web")
    assert "has no key" in made.command("keys", "test", record.id, "openai").err
    command = ("keys", "set", "tested", "openai", "--organization")
    assert piped(made, monkeypatch, KEY, *command).code == 0
    server.requests.clear()
    done = made.command("keys", "test", record.id, "openai", "--json").json
    assert (done["worked"], done["reason"]) == (True, None)
    assert done["latency_ms"] >= 0
    assert len(server.requests) == 1
    assert server.keys == {KEY}
    [row] = made.session().catalog.usage.rows(today(), record.id)
    assert row.used.requests == 1
    server.faults.append(Status(401))
    refused = made.command("keys", "test", "tested", "openai", "--organization")
    assert refused.code == 1
    assert "does not work" in refused.err
    assert KEY not in refused.err + refused.out
    assert [entry.worked for entry in ring(made).entries(record.id)] == [False]
    assert piped(made, monkeypatch, KEY, "keys", "set", record.id, "anthropic").code in {0, 1}
    assert "cannot be tested" in made.command("keys", "test", record.id, "openai-compatible").err


# -- tokens


def identity(catalog: Catalog, **claims: Any) -> Identity:
    async def authenticated() -> Identity:
        reader = TokenReader(catalog.database)
        try:
            token = jwt.encode({"sub": "ada", "exp": time.time() + 60, **claims}, SECRET)
            settings = JwtSettings(secret=SECRET, organization_claim="org")
            return await Authenticator(reader, settings, lambda name: name).authenticate(
                f"Bearer {token}"
            )
        finally:
            await reader.close()

    return asyncio.run(authenticated())


def test_a_token_of_an_organization_covers_its_projects(made: Installation) -> None:
    catalog = made.session().catalog
    one, two = put(made, "covered", "one"), put(made, "covered", "two")
    foreign = put(made, "uncovered", "one")
    # Of the same organization, and no project: its profile requires none.
    made.add_tenant("plain", organization="covered", project="three", **FAST)
    made.session().reconcile()
    admin = identity(catalog, org="covered", role="admin")
    assert admin.tenants == {one.id, two.id}
    assert admin.require_admin_organization() == "covered"
    assert admin.require_admin_tenant(two.id) == two.id
    for refused in (foreign.id, "plain", "nobody"):
        with pytest.raises(Forbidden):
            admin.require_admin_tenant(refused)
    with pytest.raises(Forbidden):
        admin.require_admin_organization("uncovered")
    three = put(made, "covered", "three")
    assert identity(catalog, org="covered", tenants=["plain"]).tenants == {
        *(one.id, two.id, three.id, "plain")
    }
    with pytest.raises(Forbidden):
        identity(catalog, org="covered").require_admin_organization()
    for other in ({}, {"organization": "covered"}, {"org": ["covered"]}, {"org": ""}):
        assert identity(catalog, **other).tenants == frozenset()
        with pytest.raises(Forbidden):
            identity(catalog, role="admin", **other).require_admin_organization()


def test_a_token_finds_a_project_only_among_its_tenants(made: Installation) -> None:
    ours, theirs = put(made, "finds", "same"), put(made, "hides", "same")
    hidden = put(made, "hides", "only-there")
    catalog, found = made.session().catalog, projects(made)
    for claims in ({"org": "finds"}, {"tenants": [ours.id]}):
        tenants = identity(catalog, **claims).tenants
        assert found.get_covered(tenants, PROFILE, "same") == ours
        for nothing in (hidden.project or "", "never-made"):
            with pytest.raises(UnknownProject) as unknown:
                found.get_covered(tenants, PROFILE, nothing)
            assert unknown.value.message == "the token does not cover this project"
    with pytest.raises(InvalidRequest, match="several organizations"):
        found.get_covered([ours.id, theirs.id], PROFILE, "same")
