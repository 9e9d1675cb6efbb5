"""A planted provider key appears nowhere, whatever the provider does with it."""

from __future__ import annotations

import asyncio
import base64
import io
import sys
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg import sql
from pydantic import SecretStr

from rag_assets.billing.embedders import Embedders
from rag_assets.billing.key_ring import KeyRing
from rag_assets.common.errors import ProviderError
from rag_assets.models.config import EmbedderConfig
from rag_assets.models.embedding.protocol import Embedder
from tests.installation import CommandResult, Installation
from tests.integration.echoing import DIMENSIONS, FAULTS, REFUSALS, echoing_provider

STORED = "sk-proj-storedPlanted0123456789abcdef"
NAMED = "sk-proj-namedPlanted0123456789abcdefg"
VARIABLE = "PLANTED_KEY"
TENANTS = ("stored", "named")


def found_in(data: bytes) -> list[bytes]:
    """Return the parts of planted keys in data, as text, base64 or hexadecimals, in any case."""
    pieces = [key[:-4].encode() for key in (STORED, NAMED)]
    pieces += [base64.b64encode(piece)[:-4] for piece in pieces]
    pieces += [piece.hex().encode() for piece in pieces]
    return [piece for piece in pieces if piece.lower() in data.lower()]


def embedder(url: str, mode: str, tenant: str) -> dict[str, Any]:
    named = {"api_key": f"${VARIABLE}"} if tenant == "named" else {}
    server = {"base_url": f"{url}/{mode}/v1", "model": "echo", "dimensions": DIMENSIONS}
    return {"provider": "openai-compatible", **server, **named}


@pytest.fixture(scope="module")
def provider() -> Iterator[str]:
    with echoing_provider() as url:
        yield url


@pytest.fixture(scope="module")
def planted(shared_installation: Installation, provider: str) -> Iterator[Installation]:
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("RAG_ASSETS_PRIVATE_ENDPOINTS", provider.removeprefix("http://"))
        environment.setenv(VARIABLE, NAMED)
        yield shared_installation


@pytest.fixture(scope="module")
def outputs(planted: Installation, provider: str) -> dict[str, CommandResult]:
    """Run commands for two tenants whose keys are first refused; return all outputs."""
    for tenant in TENANTS:
        folder = planted.add_tenant(tenant, embedder=embedder(provider, "401", tenant))
        (folder / "a.md").write_text("# A\n\nThe tide turns at noon.\n")
    said = {}
    with pytest.MonkeyPatch.context() as given:
        given.setattr(sys, "stdin", io.StringIO(STORED))
        said["keys set"] = planted.command("keys", "set", "stored", "openai-compatible")
    # In a process of its own, with everything logged that the library has to tell.
    said["refused"] = planted.cli("sync", *TENANTS, OPENAI_LOG="debug")
    said["keys list, refused"] = planted.command("keys", "list", "--json")
    for tenant in TENANTS:
        said[f"documents {tenant}"] = planted.command("documents", tenant)
        planted.configure(tenant, embedder=embedder(provider, "ok", tenant))
    said["taken"] = planted.command("sync", *TENANTS)
    for tenant in TENANTS:
        said[f"search {tenant}"] = planted.command("search", tenant, "when does the tide turn?")
    for command in ("plan stored", "check stored", "keys list", "keys list --json", "keys rotate"):
        said[command] = planted.command(*command.split())
    return said


def test_commands_say_what_is_wrong_without_the_key(outputs: dict[str, CommandResult]) -> None:
    for name, result in outputs.items():
        assert result.code == (1 if name.startswith("refused") else 0), (name, result.err)
        assert found_in((result.out + result.err).encode()) == [], name
    for tenant in TENANTS:
        assert "FAILED" in outputs[f"documents {tenant}"].out
        assert "The tide turns" in outputs[f"search {tenant}"].out
    before, after = (
        {entry["tenant"]: entry for entry in outputs[name].json["keys"]}
        for name in ("keys list, refused", "keys list --json")
    )
    assert (before["stored"]["worked"], after["stored"]["worked"]) == (False, True)
    assert (after["stored"]["shown"], after["named"]["shown"]) == ("…cdef", f"${VARIABLE}")


def test_postgres_holds_no_key_neither_ours_nor_dagsters(
    planted: Installation, outputs: dict[str, CommandResult]
) -> None:
    filled = set()
    with psycopg.connect(planted.environment["RAG_ASSETS_DATABASE_URL"]) as connection:
        tables = connection.execute(
            "SELECT schemaname, tablename FROM pg_tables"
            " WHERE schemaname NOT IN ('pg_catalog', 'information_schema')"
        ).fetchall()
        for table in tables:
            query = sql.SQL("SELECT t::text FROM {} t").format(sql.Identifier(*table))
            for (row,) in connection.execute(query):
                filled.add(".".join(table))
                assert found_in(row.encode()) == [], table
    assert filled >= {
        *("rag_catalog.provider_keys", "rag_catalog.documents", "rag_catalog.events"),
        *("rag_dagster.event_logs", "rag_dagster.runs", "rag_dagster.run_tags"),
    }


def test_no_file_of_the_installation_holds_a_key(
    planted: Installation, outputs: dict[str, CommandResult]
) -> None:
    files = [path for path in planted.home.parent.rglob("*") if path.is_file()]
    assert Path(planted.environment["RAG_ASSETS_MASTER_KEY_FILE"]) in files
    assert any(".local" in path.parts for path in files)
    for path in files:
        assert found_in(path.read_bytes()) == [], path


async def embed_in_time(embedder: Embedder) -> None:
    try:
        await embedder.embed(["The tide turns at noon."], purpose="query")
    finally:
        await embedder.close()


@pytest.mark.parametrize("fault", FAULTS)
def test_no_error_holds_a_key(
    planted: Installation,
    outputs: dict[str, CommandResult],
    provider: str,
    fault: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    session = planted.session()
    tenants = [session.catalog.tenants.get(tenant) for tenant in TENANTS]
    for record in tenants:
        config = EmbedderConfig.model_validate(embedder(provider, fault, record.id))
        made = session.embedders.get_embedder(record.ref, config)
        with caplog.at_level("DEBUG"), pytest.raises(ProviderError) as failed:
            asyncio.run(embed_in_time(made))
        error = failed.value
        told = "".join(traceback.format_exception(error, chain=True))
        shown = (told, error.advice, repr(error), repr(made), str(vars(error)), caplog.text)
        assert found_in("\n".join(shown).encode()) == [], fault
        assert error.message
        if fault in REFUSALS and fault != "400":
            assert error.requests == 1


def test_no_intermediate_object_shows_a_key(
    planted: Installation, outputs: dict[str, CommandResult]
) -> None:
    session = planted.session()
    ring = KeyRing(session.catalog, session.settings)
    shown: list[object] = [session.settings, ring, Embedders(session.catalog, session.settings)]
    for tenant in TENANTS:
        ctx = planted.context(tenant)
        credentials = ring.credentials(ctx.ref, "openai-compatible", ctx.tenant.embedder.api_key)
        secret = credentials()
        assert secret.get_secret_value() in {STORED, NAMED}
        shown += [ctx, ctx.tenant, ctx.tenant.embedder, ctx.embedder, credentials, secret]
    shown += [*ring.entries(), *session.catalog.provider_keys.all()]
    for value in shown:
        text = f"{value!r} {value}"
        assert found_in(text.encode()) == [], type(value)
    assert SecretStr(STORED) != secret
