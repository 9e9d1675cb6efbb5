"""Faults in the lake, injected in its rows, and the checks that find them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from sqlalchemy import text

from rag_assets.ingest.chunking.model import Chunk
from rag_assets.pipeline.preview import preview_sync
from tests.integration.checks.conftest import MakeTenant
from tests.integration.checks.faults import ALL, DOCUMENTS, CheckedTenant

CREDENTIAL = "AKIA" + "Q7X2MZP4LT9WKR3B"
"""Put together here, so that no scanner of this repository takes it for one."""

LAKE = "embeddings.lake"


def test_a_healthy_tenant_passes_all_and_lists_what_was_compared(tenant: CheckedTenant) -> None:
    outcome = tenant.check()
    assert outcome.failing == set()
    # Without caps, judged questions and fifty searches, these checks compare nothing.
    for name in ALL - {
        "embeddings.spending",
        "retrieval_quality.retrieval_quality",
        "search_index.thresholds",
    }:
        compared = outcome.compared(name)
        assert compared, name
        assert outcome.checks[name].metadata["offenders"] == 0
        if name != "search_index.staleness":
            assert all(expected == actual for expected, actual in compared.values()), name
    held = tenant.ctx.catalog.index.entry_count(tenant.name, tenant.generation.number)
    assert outcome.compared("search_index.drift")["generation 1: entries"] == (
        str(held),
        str(held),
    )


def test_a_run_of_the_whole_graph_checks_its_slice(
    make_tenant: MakeTenant,
) -> None:
    tenant = make_tenant("growing")
    (tenant.folder / "new.md").write_text("# New\n\nCame later.\n")
    outcome = tenant.run("__ASSET_JOB")
    assert outcome.failing == set()
    assert outcome.checks["chunks.secrets"].metadata["documents scanned"] == 1
    assert outcome.checks["chunks.expectations"].metadata["rows"] == 1
    assert outcome.checks["embeddings.dimensions"].metadata["vectors"] == 1
    whole = tenant.check(tables=False)
    assert whole.checks["chunks.secrets"].metadata["documents scanned"] == len(DOCUMENTS) + 1


def test_languages_check_documents_in_a_script_that_the_embedder_does_not_read_warns(
    make_tenant: MakeTenant,
) -> None:
    arabic = {f"{n}.md": f"تحفظ مفاتيح المستودع رقم {n} في الخزانة الحمراء.\n" for n in range(3)}
    files = {**arabic, "english.md": "The keys of the store hang in the red cupboard.\n"}
    tenant = make_tenant("arabic", files=files, embedder={"provider": "local"})
    assert preview_sync(tenant.ctx).unread == ""  # nothing is due

    found = tenant.run("check_tenant").checks["embeddings.languages"]
    assert (found.passed, found.severity) == (False, "WARN")
    assert "3 of 4 documents" in found.description
    assert "local/all-MiniLM-L6-v2 does not read (Arabic)" in found.description
    assert "local/multilingual-e5-small" in found.description

    (tenant.folder / "new.md").write_text(arabic["0.md"] + "هذا نص جديد.\n", encoding="utf-8")
    assert preview_sync(tenant.ctx).unread.startswith("1 of 1 documents are in a script")


def test_an_empty_tenant_passes_all(make_tenant: MakeTenant) -> None:
    assert make_tenant("empty", files={}).check().failing == set()


def test_a_credential_in_a_stored_chunk_fails_secrets_and_quarantines(
    make_tenant: MakeTenant,
) -> None:
    tenant = make_tenant("leaking")
    tenant.change_chunks(
        "oncall.md", lambda chunk: replace(chunk, text=f"{chunk.text}\nkey {CREDENTIAL}")
    )
    outcome = tenant.check()
    # The altered text has no vector; it may be noticed before or after the document is withheld.
    assert outcome.failing - {LAKE} == {"chunks.secrets", "search_index.quarantine"}
    secrets = outcome.checks["chunks.secrets"]
    assert secrets.severity == "ERROR"
    assert outcome.compared("chunks.secrets") == {"credentials left": ("0", "1")}
    [offender] = outcome.offenders("chunks.secrets")
    assert (offender["document"], offender["where"]) == ("files/oncall.md", "text")
    assert "aws-access-key-id" in offender["rules"]
    quarantined = tenant.document("oncall.md")
    assert quarantined.status == "FAILED"
    assert "credential" in (quarantined.error_message or "")
    assert tenant.document("leave.md").status == "READY"
    served = tenant.ctx.catalog.index.stream_versions(tenant.name, tenant.generation.number)
    assert quarantined.document_id not in {version.document_id for version in served}
    events = tenant.ctx.catalog.events.latest(tenant.name, kind="document_failed")
    for shown in (repr(secrets), quarantined.error_message or "", repr(events)):
        assert CREDENTIAL not in shown


LOSE_THE_LOCK = """
CREATE FUNCTION rag_catalog.lose_the_lock() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.holder ->> 'what' = 'secrets check' THEN
        PERFORM pg_advisory_unlock_all();
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER lose_the_lock AFTER INSERT OR UPDATE ON rag_catalog.tenant_locks
    FOR EACH ROW EXECUTE FUNCTION rag_catalog.lose_the_lock();
"""
KEEP_THE_LOCK = """
DROP TRIGGER lose_the_lock ON rag_catalog.tenant_locks;
DROP FUNCTION rag_catalog.lose_the_lock;
"""


def test_the_secrets_check_deletes_entries_only_while_it_holds_the_lock(
    make_tenant: MakeTenant,
) -> None:
    tenant = make_tenant("leaking-unlocked")
    tenant.change_chunks(
        "oncall.md", lambda chunk: replace(chunk, text=f"{chunk.text}\nkey {CREDENTIAL}")
    )
    database = tenant.ctx.catalog.database
    with database.begin() as connection:
        connection.execute(text(LOSE_THE_LOCK))
    try:
        assert "chunks.secrets" in tenant.check(tables=False).failing
        tenant.elasticsearch.indices.refresh(index=tenant.generation.index_name)
        assert tenant.entries("oncall.md"), "nothing is deleted once the lock is lost"
    finally:
        with database.begin() as connection:
            connection.execute(text(KEEP_THE_LOCK))
    held = tenant.ctx.catalog.index.stream_versions(tenant.name, tenant.generation.number)
    document_id = tenant.document("oncall.md").document_id
    assert document_id not in {version.document_id for version in held}, "no search returns it"
    assert "chunks.secrets" in tenant.check(tables=False).failing
    tenant.elasticsearch.indices.refresh(index=tenant.generation.index_name)
    assert not tenant.entries("oncall.md"), "under the lock they are deleted"


def test_what_the_chain_masked_or_withheld_is_a_note(make_tenant: MakeTenant) -> None:
    keys = f"# Keys\n\nIt is {CREDENTIAL}.\n"
    files = {"keys.md": keys, "alone.txt": CREDENTIAL}
    outcome = make_tenant("masked", files=files).check(tables=False)
    assert outcome.failing == set()
    metadata = outcome.checks["chunks.secrets"].metadata
    assert metadata["chunks dropped by the pipeline"] == 1
    assert "aws-access-key-id: 1" in metadata["rules of dropped chunks"]
    assert metadata["documents with masked credentials"] == 2
    assert "files/keys.md: aws-access-key-id 1" in metadata["credentials masked in"]


@pytest.mark.parametrize(
    ("change", "fault", "also"),
    [
        (lambda vector: vector * 2, "norm 2", set()),
        (lambda vector: np.full_like(vector, np.nan), "not finite", set()),
        (lambda vector: vector[:100], "100 dimensions", {"embeddings.expectations"}),
    ],
    ids=["norm", "nan", "dimension"],
)
def test_a_wrong_vector_fails_dimensions(
    tenant: CheckedTenant,
    change: Callable[[np.ndarray], np.ndarray],
    fault: str,
    also: set[str],
) -> None:
    text = tenant.change_vector("leave.md", change)
    outcome = tenant.check()
    assert outcome.failing == {"embeddings.dimensions", *also}
    assert outcome.checks["embeddings.dimensions"].severity == "ERROR"
    assert outcome.offenders("embeddings.dimensions") == [
        {"document": "files/leave.md", "text": text, "fault": fault}
    ]
    for name in also:
        [broken] = outcome.offenders(name)
        assert "384 float32 values" in broken["expectation"]
        assert (broken["document"], broken["which"]) == ("files/leave.md", text)


def test_an_ordinal_twice_fails_expectations(tenant: CheckedTenant) -> None:
    tenant.change_chunks("rollback.md", lambda chunk: replace(chunk, ordinal=0))
    outcome = tenant.check()
    assert outcome.failing == {"chunks.expectations"}
    offenders = outcome.offenders("chunks.expectations")
    assert {o["expectation"] for o in offenders} == {"a chunk set has one chunk per ordinal"}
    assert {o["document"] for o in offenders} == {"files/rollback.md"}


def test_a_chunk_above_its_limit_fails_expectations(tenant: CheckedTenant) -> None:
    def grow(chunk: Chunk) -> Chunk:
        return replace(chunk, token_count=tenant.ctx.tenant.chunker.max_tokens + 1)

    tenant.change_chunks("leave.md", grow)
    outcome = tenant.check()
    assert outcome.failing - {LAKE} == {"chunks.expectations"}
    [offender] = outcome.offenders("chunks.expectations")
    assert offender["expectation"] == "a chunk is within the limit of its chunker"
    assert (offender["document"], offender["which"]) == ("files/leave.md", "0")
    page = outcome.checks["chunks.expectations"].metadata["data docs"]
    assert page == f"/data-docs/{tenant.name}/chunks/index.html"
    docs = tenant.ctx.settings.data_docs / tenant.name / "chunks"
    pages = "".join(page.read_text() for page in docs.rglob("*.html"))
    assert "token_count" in pages
    assert "files/leave.md" in pages
    for words in DOCUMENTS.values():
        assert words.splitlines()[2] not in pages
