"""Audit archives: complete for one tenant, without secrets, questions, texts and other tenants."""

from __future__ import annotations

import hashlib
import json
import os
import stat
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest
from pydantic import SecretStr
from sqlalchemy import delete, insert, select, text, update

from rag_assets.billing.key_ring import KeyRing
from rag_assets.common.hashing import canonical, sha256_hex
from rag_assets.pipeline.audit_export import SCHEMA_VERSION
from rag_assets.storage.catalog.accounts.tables import provider_keys, service_tokens
from rag_assets.storage.catalog.erasure.receipts import receipts
from rag_assets.storage.catalog.journal.check_results import CheckResult
from rag_assets.storage.catalog.tables import events, generations, tenants
from tests.driving import Driver
from tests.installation import Installation
from tests.integration.aging import AgingTenant

PASSWORD = "Zk7pQw29vTxLm4"
"""A planted credential."""
QUESTION = "which barnacle lives under the pier"
DOCUMENT = "The lighthouse keeper hides marmalade"
NEIGHBOUR = "quokka"


@pytest.fixture(scope="module")
def tenant(shared_installation: Installation, driver: Driver) -> AgingTenant:
    """Create a tenant with rows of every kind, and a neighbour with as many."""
    made = [
        AgingTenant.made(shared_installation, driver, id_, retention_days=365)
        for id_ in ("audited", NEIGHBOUR)
    ]
    for one in made:
        one.write("old", f"{DOCUMENT} of {one.id}.")
        one.write("new", f"Words of {one.id}.")
        one.push("record", f"Words that {one.id} keeps.")
        one.sync()
        run(one, "access", "grant", one.id, "board", f"{one.id}-reader")
        run(one, "tokens", "create", one.id)
        run(one, "hold", "set", one.id, "--source", "pushed", "--reason", f"claim of {one.id}")
        one.forward(days=366)
        one.prune(confirm=True)
        one.installation.search(one.id, f"{QUESTION} of {one.id}")
        with one.within() as ctx:
            KeyRing(ctx.catalog, ctx.settings).set(ctx.ref, "openai", SecretStr(f"sk-{PASSWORD}"))
            failed = f"{one.id} has password={PASSWORD}"
            outcome = CheckResult("chunks", "secrets", False, "ERROR", failed)
            ctx.catalog.check_results.record(ctx.ref, [outcome])
    # Closing the retriever writes its events.
    shared_installation.retriever.close()
    return made[0]


def run(tenant: AgingTenant, *arguments: str) -> Any:
    answer = tenant.installation.command(*arguments, "--json")
    assert answer.code == 0, answer.err or answer.out
    return json.loads(answer.out)


def exported(tenant: AgingTenant, path: Path) -> dict[str, bytes]:
    run(tenant, "audit", "export", tenant.id, "--out", str(path))
    with ZipFile(path) as archive:
        assert archive.testzip() is None
        return {name: archive.read(name) for name in archive.namelist()}


def lines(content: bytes) -> list[dict[str, Any]]:
    return [json.loads(line) for line in content.splitlines()]


def test_the_archive_holds_all_that_the_catalog_has_of_the_tenant(
    tenant: AgingTenant, tmp_path: Path
) -> None:
    files = exported(tenant, tmp_path / "audit.zip")
    catalog = tenant.driver.session.catalog
    sources = json.loads(files["sources.json"])
    assert sources["tenant"]["id"] == tenant.id
    assert [s["name"] for s in sources["configuration"]["sources"]] == ["files", "pushed"]
    assert {s["source"] for s in sources["sources"]} == {"files", "pushed"}
    policies = json.loads(files["policies.json"])
    assert policies["policies"]["retention_days"] == 365
    assert policies["policies"]["events_days"] == 90
    assert policies["policies"]["privacy"] == {"send_unmasked_questions": False}
    [hold] = policies["holds"]
    assert (hold["source"], hold["reason"]) == ("pushed", "claim of audited")
    [grant] = lines(files["grants.jsonl"])
    assert (grant["scope"], grant["principal"]) == ("board", "audited-reader")
    token = lines(files["tokens.jsonl"])[0]
    assert token.keys() == {*("token_id", "role", "principals"), "created_at"} | {
        *("expires_at", "last_used_at")
    }
    changes = {change["kind"] for change in lines(files["security_changes.jsonl"])}
    assert changes >= {"scope_granted", "token_created", "hold_set"}
    assert [r["number"] for r in lines(files["receipts.jsonl"])] == [
        receipt.number for receipt in catalog.receipts.all(tenant.id)
    ]
    assert lines(files["builds.jsonl"])[-1]["answers"]
    [check] = lines(files["checks.jsonl"])
    assert (check["asset"], check["name"], check["passed"]) == ("chunks", "secrets", False)
    assert [key["provider"] for key in policies["provider_keys"]] == ["openai"]


def test_accesses_say_who_when_and_how_many_and_never_what(
    tenant: AgingTenant, tmp_path: Path
) -> None:
    at = datetime(2026, 1, 2, 23, 30, tzinfo=UTC)
    payload = {"search_id": "ab12", "caller": "ann", "query": QUESTION, "ids": ["a:b:0", "a:b:1"]}
    with tenant.driver.session.catalog.database.begin() as connection:
        for kind in ("rag_search_started", "rag_search_completed"):
            row = {"tenant": tenant.id, "kind": kind, "at": at, "payload": payload}
            connection.execute(insert(events).values(row))
    files = exported(tenant, tmp_path / "audit.zip")
    real = [event for event in lines(files["accesses.jsonl"]) if event.get("caller") != "ann"]
    assert [event["kind"] for event in real] == ["rag_search_started", "rag_search_completed"]
    assert real[1]["hits_count"] == 1
    of_ann = [event for event in lines(files["accesses.jsonl"]) if event.get("caller") == "ann"]
    assert [event["kind"] for event in of_ann] == ["rag_search_started", "rag_search_completed"]
    assert of_ann[1]["passages_count"] == 2
    assert of_ann[1].keys().isdisjoint({"query", "ids", "scores", "question", "names"})
    assert {"day": "2026-01-02", "caller": "ann", "searches": 1} in lines(
        files["access_totals.jsonl"]
    )


def test_nothing_of_a_secret_a_question_a_document_or_another_tenant_is_in_it(
    tenant: AgingTenant, tmp_path: Path
) -> None:
    database = tenant.driver.session.catalog.database
    created = run(tenant, "tokens", "create", tenant.id)
    before = tenant.driver.session.catalog.tenants.get(tenant.id).config
    planted = {
        **before,
        "name": f"Reads with password={PASSWORD}",
        "sources": [
            *before["sources"],
            {"name": "sql", "type": "sql", "url": f"postgresql://app:{PASSWORD}@db/x"},
            {"name": "odd", "type": "odd", "api_key": PASSWORD, "passwords": [PASSWORD, "$NAME"]},
        ],
    }
    with database.begin() as connection:
        connection.execute(update(tenants).where(tenants.c.id == tenant.id).values(config=planted))
    try:
        files = exported(tenant, tmp_path / "audit.zip")
    finally:
        with database.begin() as connection:
            connection.execute(
                update(tenants).where(tenants.c.id == tenant.id).values(config=before)
            )
    everything = b"\n".join(files.values())
    assert b"postgresql://[masked]@db/x" in files["sources.json"]
    assert b'"$NAME"' in files["sources.json"]
    assert b"secrets" in files["checks.jsonl"]
    secrets = [PASSWORD, created["token"], *secret_values(tenant)]
    assert len(secrets) >= 5
    for absent in (*secrets, "barnacle", "marmalade", "old.md", NEIGHBOUR):
        assert absent.encode() not in everything, absent


def secret_values(tenant: AgingTenant) -> list[str]:
    """Return every secret of the tenant in Postgres, as hexadecimal digits."""
    columns = (
        *(service_tokens.c.token_sha256, provider_keys.c.ciphertext, generations.c.digest_key),
    )
    with tenant.driver.session.catalog.database.begin() as connection:
        return [
            bytes(value).hex()
            for column in columns
            for value in connection.scalars(
                select(column).where(column.table.c.tenant == tenant.id)
            )
        ]


def peak_bytes() -> int:
    """Return the largest memory of this process since it was reset."""
    status = Path("/proc/self/status").read_text()
    return 1_024 * int(status.partition("VmHWM:")[2].split()[0])


@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="needs Linux's /proc")
def test_memory_does_not_grow_with_the_number_of_events(
    tenant: AgingTenant, tmp_path: Path
) -> None:
    row = "jsonb_build_object('caller', 'bob', 'query', repeat('q', 8000))"
    filled = text(
        "INSERT INTO rag_catalog.events (tenant, kind, payload) SELECT :tenant,"  # noqa: S608
        f" 'ai_context_loaded', {row} FROM generate_series(1, 10000)"
    )
    exported(tenant, tmp_path / "small.zip")
    with tenant.driver.session.catalog.database.begin() as connection:
        connection.execute(filled, {"tenant": tenant.id})
    try:
        Path("/proc/self/clear_refs").write_text("5")
        before_bytes = peak_bytes()
        run(tenant, "audit", "export", tenant.id, "--out", str(tmp_path / "large.zip"))
        grown_bytes = peak_bytes() - before_bytes
    finally:
        with tenant.driver.session.catalog.database.begin() as connection:
            of_bob = events.c.payload["caller"].astext == "bob"
            connection.execute(delete(events).where(of_bob))
    # The payloads alone are 80 MB.
    assert grown_bytes < 40_000_000
    with ZipFile(tmp_path / "large.zip") as archive:
        assert len(archive.read("accesses.jsonl").splitlines()) >= 10_000


def test_every_file_has_its_hash_and_is_explained(tenant: AgingTenant, tmp_path: Path) -> None:
    files = exported(tenant, tmp_path / "audit.zip")
    manifest = json.loads(files.pop("manifest.json"))
    assert manifest["schema_version"] == SCHEMA_VERSION
    assert manifest["installation"] == str(tenant.driver.session.identity.id)
    assert manifest["tenant"] == tenant.id
    assert manifest["exported_by"].startswith("operator ")
    assert datetime.fromisoformat(manifest["read_at"]).utcoffset() is not None
    assert len(manifest["left_out"]) >= 5
    assert manifest["files"].keys() == files.keys()
    for name, content in files.items():
        entry = manifest["files"][name]
        assert entry["sha256"] == hashlib.sha256(content).hexdigest(), name
        assert entry["bytes"] == len(content)
        if name.endswith(".jsonl"):
            assert entry["records"] == len(lines(content))
    explained = files["README.txt"].decode()
    assert all(
        f"\n{name}\n    " in explained for name in {*files, "manifest.json"} - {"README.txt"}
    )


def test_the_verification_names_a_receipt_that_was_altered(
    tenant: AgingTenant, tmp_path: Path
) -> None:
    files = exported(tenant, tmp_path / "intact.zip")
    stored = lines(files["receipts.jsonl"])
    assert stored
    assert all(receipt["is_intact"] for receipt in stored)
    assert json.loads(files["verification.json"])["is_intact"]
    first = stored[0]
    fields = ("number", "id", "tenant", "incarnation", "kind", "rule", "by", "at", "counts")
    sealed = [first[name] for name in (*fields, "documents", "proof", "previous")]
    assert sha256_hex(canonical(sealed)) == first["hash"]
    database = tenant.driver.session.catalog.database

    def set_rule(rule: str) -> None:
        with database.begin() as connection:
            of_first = receipts.c.number == first["number"]
            connection.execute(update(receipts).where(of_first).values(rule=rule))

    set_rule("retention_days: 1")
    try:
        path = tmp_path / "altered.zip"
        said = tenant.installation.command("audit", "export", tenant.id, "--out", str(path))
        assert said.code == 0
        assert "warning: receipts were altered" in said.err
        with ZipFile(path) as archive:
            verification = json.loads(archive.read("verification.json"))
            altered = lines(archive.read("receipts.jsonl"))
            assert not json.loads(archive.read("manifest.json"))["receipts_are_intact"]
            assert b"without the one before: 1 receipt;" in archive.read("README.txt")
    finally:
        set_rule(first["rule"])
    assert verification["altered_or_without_predecessor"] == [first["number"]]
    assert not verification["is_intact"]
    assert [r["number"] for r in altered if not r["is_intact"]] == [first["number"]]


def test_a_former_tenant_of_the_same_id_is_another_tenant(
    tenant: AgingTenant, tmp_path: Path
) -> None:
    installation = tenant.installation
    again = AgingTenant(installation, tenant.driver, "again")
    for reader in ("former-reader", "present-reader"):
        installation.add_tenant("again", embedder={"provider": "deterministic"})
        tenant.driver.session.reconcile()
        run(again, "access", "grant", "again", "board", reader)
        if reader == "former-reader":
            run(again, "tenants", "remove", "again", "--yes")
    files = exported(again, tmp_path / "audit.zip")
    everything = b"\n".join(files.values())
    assert b"present-reader" in files["security_changes.jsonl"]
    assert b"former-reader" not in everything
    assert files["receipts.jsonl"] == b""
    assert "1 receipt of former tenants" in json.loads(files["manifest.json"])["left_out"][-1]


def test_an_archive_is_private_appears_whole_and_replaces_nothing(
    tenant: AgingTenant, tmp_path: Path
) -> None:
    path = tmp_path / "audit.zip"
    umask = os.umask(0)
    try:
        exported(tenant, path)
    finally:
        os.umask(umask)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [file.name for file in tmp_path.iterdir()] == ["audit.zip"]
    before = path.read_bytes()
    (tmp_path / "link.zip").symlink_to(tmp_path / "nothing")
    for taken in (path, tmp_path / "link.zip", tmp_path / "missing" / "audit.zip"):
        refused = tenant.installation.command("audit", "export", tenant.id, "--out", str(taken))
        assert refused.code == 1
        assert refused.err.startswith("error: ")
        assert len(refused.err.splitlines()) == 2
    unknown = tmp_path / "unknown.zip"
    assert tenant.installation.command("audit", "export", "no", "--out", str(unknown)).code == 1
    assert path.read_bytes() == before
    assert {file.name for file in tmp_path.iterdir()} == {"audit.zip", "link.zip"}
