"""Tenants' keys are set, shown, removed and rotated; crashes neither lose nor expose them."""

from __future__ import annotations

import asyncio
import io
import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, LiteralString

import psycopg
import pytest
from pydantic import SecretStr

from rag_assets.billing.key_ring import KeyRing
from rag_assets.billing.master_key import MasterKey
from rag_assets.common.errors import ConfigurationError, KeyUnreadable, NoProviderKey
from rag_assets.models.config import EmbedderConfig
from rag_assets.models.embedding.vectors import embed_query
from rag_assets.models.factory import get_embedder_id
from rag_assets.storage.catalog.database import TenantRef
from rag_assets.storage.catalog.documents.model import Failure
from rag_assets.storage.catalog.documents.status import NEVER
from tests.driving import Driver
from tests.installation import FAST, CommandResult, Installation
from tests.integration.test_cli import assert_refused

KEY = "sk-proj-planted0123456789abcdefWXYZ"
SCRIPT = Path(__file__).with_name("rotating.py")


@pytest.fixture
def acme(installation: Installation) -> TenantRef:
    installation.add_tenant("acme", **FAST)
    return installation.session().catalog.tenants.get("acme").ref


def ring(installation: Installation, **environ: str) -> KeyRing:
    session = installation.session()
    return KeyRing(session.catalog, session.settings, environ)


def key_file(installation: Installation) -> Path:
    return Path(installation.environment["RAG_ASSETS_MASTER_KEY_FILE"])


def read(keys: KeyRing, ref: TenantRef, provider: str = "openai") -> str:
    return keys.credentials(ref, provider, None)().get_secret_value()


@pytest.fixture
def set_key(installation: Installation, monkeypatch: pytest.MonkeyPatch) -> Any:
    def run(given: str, *arguments: str) -> CommandResult:
        monkeypatch.setattr(sys, "stdin", io.StringIO(given))
        return installation.command("keys", "set", *arguments)

    return run


def execute(installation: Installation, statement: LiteralString) -> None:
    with psycopg.connect(installation.environment["RAG_ASSETS_DATABASE_URL"]) as connection:
        connection.execute(statement)


def test_a_key_is_set_shown_in_part_and_removed(
    installation: Installation, acme: TenantRef, set_key: Any
) -> None:
    said = set_key(f"  {KEY}\n", "acme", "openai")
    assert (said.code, said.out) == (0, "Tenant acme has a key for openai.\n")
    assert read(ring(installation), acme) == KEY
    assert set_key("0123456789abcde", "acme", "gemini", "--json").code == 0
    listed = installation.command("keys", "list", "acme")
    assert "…WXYZ" in listed.out
    entries = installation.command("keys", "list", "--json").json["keys"]
    assert [(e["provider"], e["shown"], e["state"]) for e in entries] == [
        ("gemini", "…", "set"),  # too short for any of it to be shown
        ("openai", "…WXYZ", "set"),
    ]
    assert {e["last_used_at"] for e in entries} == {e["worked"] for e in entries} == {None}
    assert KEY[:-4] not in said.out + said.err + listed.out + json.dumps(entries)
    assert installation.command("keys", "remove", "acme", "openai").code == 0
    assert_refused(installation.command("keys", "remove", "acme", "openai"), "no stored key")
    with pytest.raises(NoProviderKey, match="'acme' has no key for openai") as missing:
        read(ring(installation), acme)
    assert "rag-assets keys set acme openai" in (missing.value.hint or "")
    assert "$NAME" in (missing.value.hint or "")


def test_an_impossible_key_is_refused(
    installation: Installation, acme: TenantRef, set_key: Any
) -> None:
    assert_refused(set_key(f"{KEY}\n{KEY}\n", "acme", "openai"), "the value cannot be a key")
    assert_refused(set_key("", "acme", "openai"), "the key is empty")
    assert_refused(set_key(KEY, "acme", "openai", KEY), "a key must not be an argument")
    assert_refused(set_key(KEY, "acme", KEY), "no provider with this name", "openai, gemini")
    assert_refused(set_key(KEY, "nobody", "openai"), "no tenant 'nobody'")
    assert_refused(installation.command("keys", "list", "nobody"), "no tenant 'nobody'")
    assert ring(installation).list_stored_providers(acme) == frozenset()


def test_a_prompt_hides_what_is_typed(installation: Installation, acme: TenantRef) -> None:
    terminal = "import os, pty, sys; sys.exit(os.waitstatus_to_exitcode(pty.spawn(sys.argv[1:])))"
    command = [sys.executable, "-m", "rag_assets.cli", "keys", "set", "acme", "openai"]
    with subprocess.Popen(
        [sys.executable, "-c", terminal, *command],
        env={**os.environ, **installation.environment},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    ) as process:
        assert process.stdin
        assert process.stdout
        shown = b""
        while b"Key of acme for openai: " not in shown:
            piece = os.read(process.stdout.fileno(), 4096)
            assert piece, shown
            shown += piece
        process.stdin.write(f"{KEY}\n".encode())
        process.stdin.flush()
        shown += process.stdout.read()
        process.stdin.close()
    assert b"has a key for openai" in shown
    assert KEY.encode() not in shown
    assert read(ring(installation), acme) == KEY


def test_documents_that_waited_for_a_key_are_retried(
    installation: Installation, acme: TenantRef, set_key: Any
) -> None:
    folder = installation.home.parent / "sources" / "acme"
    (folder / "a.md").write_text("# A\n\nSome words.\n")
    Driver(installation).sync("acme")
    catalog = installation.session().catalog
    documents = catalog.documents
    document = documents.all("acme")[0]
    failure = Failure(document.document_id, document.document_key, "no key", "no-key", NEVER)
    catalog.quarantine.fail(acme, [failure], config_key="any")
    said = set_key(KEY, "acme", "openai")
    assert "1 document will be retried by: rag-assets sync acme" in said.out
    assert documents.all("acme")[0].retry_at != NEVER


def test_a_key_by_reference_goes_before_a_stored_one(
    installation: Installation, acme: TenantRef
) -> None:
    keys = ring(installation, ACME_KEY=f"{KEY}\n")
    keys.set(acme, "openai", SecretStr(KEY.upper()))
    assert keys.credentials(acme, "openai", "$ACME_KEY")().get_secret_value() == KEY
    missing = ring(installation).credentials(acme, "openai", "$ACME_KEY")
    with pytest.raises(
        NoProviderKey, match=r"embedder\.api_key refers to the environment variable ACME_KEY"
    ):
        missing()


def test_a_key_is_good_for_its_tenant_and_provider_only(
    installation: Installation, acme: TenantRef
) -> None:
    installation.add_tenant("other", **FAST)
    keys = ring(installation)
    other = installation.session().catalog.tenants.get("other").ref
    keys.set(acme, "openai", SecretStr(KEY))
    execute(installation, "UPDATE rag_catalog.provider_keys SET tenant = 'other'")
    with pytest.raises(KeyUnreadable, match="'other' for openai is damaged"):
        read(keys, other)
    execute(installation, "UPDATE rag_catalog.provider_keys SET tenant = 'acme'")
    execute(installation, "UPDATE rag_catalog.provider_keys SET provider = 'gemini'")
    with pytest.raises(KeyUnreadable, match="'acme' for gemini is damaged"):
        read(keys, acme, "gemini")
    execute(installation, "UPDATE rag_catalog.provider_keys SET provider = 'openai'")
    assert read(keys, acme) == KEY
    execute(installation, "UPDATE rag_catalog.provider_keys SET ciphertext = ciphertext || '\\x00'")
    with pytest.raises(KeyUnreadable, match="is damaged"):
        read(keys, acme)
    with pytest.raises(NoProviderKey, match="no key"):  # of a former use of the id
        read(keys, TenantRef("acme", acme.incarnation - 1))


def test_whether_a_key_worked_is_noted_until_it_is_replaced(
    installation: Installation, acme: TenantRef
) -> None:
    keys = ring(installation)
    keys.set(acme, "openai", SecretStr(KEY))
    for worked in (False, True):
        keys.record_use(acme, "openai", worked=worked)
        assert [entry.worked for entry in keys.entries()] == [worked]
    assert keys.entries()[0].last_used_at is not None
    keys.set(acme, "openai", SecretStr(KEY.lower()))
    assert (keys.entries()[0].worked, keys.entries()[0].last_used_at) == (None, None)


def test_a_removed_tenants_keys_are_gone(installation: Installation, acme: TenantRef) -> None:
    ring(installation).set(acme, "openai", SecretStr(KEY))
    assert installation.command("tenants", "remove", "acme", "--yes").code == 0
    assert ring(installation).entries() == []


# -- whose key


def test_auto_goes_by_the_keys_that_there_are(installation: Installation) -> None:
    installation.add_tenant(
        "acme", chat_model="claude-3-5-haiku-latest", embedder={"provider": "auto"}
    )
    session = installation.session()
    record = session.catalog.tenants.get("acme")
    keys = ring(installation)

    def provider() -> str:
        return session.embedders.tenant(record).embedder.provider

    assert provider() == "gemini"
    listed = installation.command("keys", "list", "--json").json["keys"]
    assert [(entry["provider"], entry["state"]) for entry in listed] == [("gemini", "missing")]
    keys.set(record.ref, "openai", SecretStr(KEY))
    assert provider() == "openai"
    assert session.embedders.choice(record).key == "stored"
    keys.set(record.ref, "gemini", SecretStr(KEY))
    assert provider() == "gemini"
    # Once OpenAI's vectors answer, they are not given up for a choice that is as good.
    openai = {"provider": "openai", "model": "text-embedding-3-small"}
    built = session.catalog.generations.create(
        record.ref,
        key="any",
        index_name="any",
        index_identity="any",
        embedder_id="openai/text-embedding-3-small@1536",
        embedder=openai,
        recipe={},
        dimensions=1536,
    )
    session.catalog.generations.publish(record.ref, built)
    assert provider() == "openai"
    keys.remove(record.ref, "openai")
    assert provider() == "gemini"


def test_a_build_is_searched_with_the_present_key(installation: Installation) -> None:
    server = {"base_url": "https://ai.example.org/v1", "model": "e5", "dimensions": 8}
    config = {"provider": "openai-compatible", **server}
    installation.add_tenant("acme", embedder={**config, "api_key": "$NEW_KEY", "concurrency": 3})
    session = installation.session()
    record = session.catalog.tenants.get("acme")
    tenant = session.embedders.tenant(record)
    built = session.catalog.generations.create(
        record.ref,
        key="any",
        index_name="any",
        index_identity="any",
        embedder_id=get_embedder_id(tenant.embedder),
        embedder={**config, "api_key": "$OLD_KEY"},
        recipe={},
        dimensions=8,
    )
    asked = session.embedders.get_generation_embedder(record.ref, tenant, built)
    assert asked.limits.concurrency == 3
    with pytest.raises(NoProviderKey, match="NEW_KEY"):
        asyncio.run(embed_query(asked, "question"))
    other = tenant.model_copy(update={"embedder": EmbedderConfig(provider="openai")})
    former = session.embedders.get_generation_embedder(record.ref, other, built)
    with pytest.raises(NoProviderKey, match="OLD_KEY"):
        asyncio.run(embed_query(former, "question"))


# -- master keys


def test_a_lost_master_key_is_reported_and_not_replaced_silently(
    installation: Installation, acme: TenantRef, set_key: Any
) -> None:
    keys = ring(installation)
    keys.set(acme, "openai", SecretStr(KEY))
    kept = key_file(installation).rename(key_file(installation).with_suffix(".kept"))
    assert [entry.state for entry in keys.entries()] == ["unreadable"]
    with pytest.raises(
        KeyUnreadable, match=r"master key [0-9a-f]{16}, which is unavailable"
    ) as lost:
        read(keys, acme)
    assert str(key_file(installation)) in (lost.value.hint or "")
    assert_refused(
        set_key(KEY, "acme", "gemini"), "which is unavailable", "keys remove acme openai"
    )
    assert_refused(installation.command("keys", "rotate"), "which is unavailable")
    assert not key_file(installation).exists()
    kept.rename(key_file(installation))
    assert read(keys, acme) == KEY
    # Setting the lost one again is the remedy.
    key_file(installation).unlink()
    keys.set(acme, "openai", SecretStr(KEY))
    assert read(keys, acme) == KEY


def test_a_master_key_of_the_environment_leaves_no_file(
    installation: Installation, acme: TenantRef
) -> None:
    old, new = (MasterKey.random().text() for _ in range(2))
    before = ring(installation, RAG_ASSETS_MASTER_KEY=old)
    before.set(acme, "openai", SecretStr(KEY))
    assert not key_file(installation).exists()
    after = ring(installation, RAG_ASSETS_MASTER_KEY=new)
    with pytest.raises(KeyUnreadable) as lost:
        read(after, acme)
    assert "RAG_ASSETS_MASTER_KEY_PREVIOUS" in (lost.value.hint or "")
    between = ring(installation, RAG_ASSETS_MASTER_KEY=new, RAG_ASSETS_MASTER_KEY_PREVIOUS=old)
    assert read(between, acme) == KEY
    assert between.rotate() == 1
    assert read(after, acme) == KEY
    with pytest.raises(KeyUnreadable):
        read(before, acme)


def test_a_rotation_leaves_one_new_key(
    installation: Installation, acme: TenantRef, set_key: Any
) -> None:
    assert installation.command("keys", "rotate", "--json").json == {"rotated": 0}
    assert not key_file(installation).exists()
    assert set_key(KEY, "acme", "openai").code == 0
    before = key_file(installation).read_text().splitlines()[-1]
    assert installation.command("keys", "rotate", "--json").json == {"rotated": 1}
    lines = [ln for ln in key_file(installation).read_text().splitlines() if ln[0] != "#"]
    assert len(lines) == 1
    assert lines != [before]
    assert read(ring(installation), acme) == KEY


def test_a_source_may_not_hold_the_master_key(
    installation: Installation, acme: TenantRef, set_key: Any
) -> None:
    inside = installation.home.parent / "sources" / "acme" / "master.key"
    session = installation.session()
    settings = type(session.settings)(home=installation.home, master_key_file=inside)
    with pytest.raises(ConfigurationError, match="holds data or documents"):
        KeyRing(session.catalog, settings, {}).set(acme, "openai", SecretStr(KEY))
    assert not inside.exists()


def test_keys_can_be_read_whenever_a_rotation_is_killed(installation: Installation) -> None:
    keys = ring(installation)
    refs = []
    for name in ("one", "two", "three"):
        installation.add_tenant(name, **FAST)
    for record in installation.session().catalog.tenants.all():
        keys.set(record.ref, "openai", SecretStr(f"{KEY}-{record.id}"))
        refs.append(record.ref)
    most = 0
    with subprocess.Popen(
        [sys.executable, str(SCRIPT)],
        env={**os.environ, **installation.environment, "PYTHONPATH": str(Path.cwd())},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as forks:
        assert forks.stdin
        assert forks.stdout
        for step in range(1, 100):
            print(step, file=forks.stdin, flush=True)
            ended = forks.stdout.readline().strip()
            for ref in refs:
                assert read(keys, ref) == f"{KEY}-{ref.id}", step
            lines = [ln for ln in key_file(installation).read_text().splitlines() if ln[0] != "#"]
            most = max(most, len(lines))
            if ended == "done":
                break
            assert ended == "killed"
        forks.stdin.close()
    assert step > 8  # lock, listing, three keys, commits, two renames
    assert most >= 2  # some were killed between the first file and the last
    assert len(lines) == 1
    assert [p.name for p in key_file(installation).parent.glob(".master.key-*")] == []


def test_keys_set_during_rotations_stay_readable(
    installation: Installation, acme: TenantRef
) -> None:
    keys = ring(installation)
    keys.set(acme, "openai", SecretStr(KEY))

    def set_and_read(number: int) -> str:
        keys.set(acme, "gemini", SecretStr(f"{KEY}-{number}"))
        return read(keys, acme, "gemini")

    with ThreadPoolExecutor(3) as pool:
        rotations = [pool.submit(keys.rotate) for _ in range(8)]
        answers = [set_and_read(number) for number in range(24)]
    assert answers == [f"{KEY}-{number}" for number in range(24)]
    assert all(rotation.result() >= 1 for rotation in rotations)
    assert read(keys, acme) == KEY
