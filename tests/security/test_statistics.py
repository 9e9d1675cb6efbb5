"""Deleted text remains in no sample of Postgres' statistics, and in no row.

ANALYZE copies values into `pg_statistic`, where they outlive their rows until the next run. So
columns with text of documents, sources or callers, or with a secret, have no statistics, and no
query plan of ours depends on them. Every column that could hold text is listed here, so that a new
column needs a decision.
"""

from __future__ import annotations

from collections.abc import Mapping

import psycopg
import pytest
from psycopg import sql

from rag_assets.ingest.sources.model import SourceMetadata
from rag_assets.storage.catalog.records.model import PushedRecord
from rag_assets.storage.catalog.tables import metadata
from tests.installation import FAST, Installation
from tests.records import put_record, remove_record

HOLDS_TEXT = """
SELECT table_name, column_name FROM information_schema.columns
WHERE table_schema = 'rag_catalog' AND table_name NOT LIKE 'alembic_version%'
  AND data_type IN ('text', 'character varying', 'character', 'jsonb', 'json', 'ARRAY', 'bytea')
"""
SAMPLES = "SELECT tablename, attname, s::text FROM pg_stats s WHERE schemaname = 'rag_catalog'"


UNSAMPLED_COLUMNS: Mapping[str, tuple[str, ...]] = {
    "check_results": ("description", "error"),
    "code_runs": ("run_id", "model", "updated_by"),
    "code_run_events": ("run_id", "external_id"),
    "document_index": ("error_message",),
    "document_kinds": ("kinds",),
    "edges": ("stated_of", "target", "evidence", "path"),
    "derivations": ("unresolved",),
    "name_uses": ("names", "numbers"),
    "symbols": ("symbol", "short"),
    "documents": (
        *("path", "uri", "title", "said_title", "tags", "metadata", "error_message"),
        *("source_type", "source_id", "page_uuid"),
    ),
    "embedding_batches": ("error",),
    "erasures": (
        *("by", "document_ids", "parse_keys", "chunk_set_keys", "counts", "blobs"),
        "progress",
    ),
    "events": ("payload",),
    "generations": ("digest_key", "embedder", "recipe", "reason", "checks", "thresholds"),
    "judged_questions": ("question_id", "question", "kind", "judgements", "pool"),
    "held_records": ("source_type", "source_id", "text", "said"),
    "held_uploads": ("file_name", "uploaded_by"),
    "holds": ("reason", "by"),
    "knowledge_staging": (
        *("agent_type", "task_type", "technology", "failure_description", "error_message"),
        *("solution_steps", "gate_type", "human_feedback", "revision_approach"),
        *("approved_approach", "when_to_try", "about", "external_id", "contributed_by", "failure"),
    ),
    "projects": ("name", "owner_token", "owner_organization"),
    "checkpoints": ("external_id", "requested_by", "error"),
    "experience_merges": ("merged_by", "split_by"),
    "experience_questions": ("asked_by",),
    "experience_feedback": ("given_by",),
    "guideline_rules": ("paths",),
    "guideline_texts": ("text", "updated_by"),
    "pages": ("readers",),
    "panel_codes": ("code_sha256", "name", "principals"),
    "panel_sessions": ("session_sha256", "name", "principals"),
    "pulled_rows": ("shown", "field", "problem", "awaited_page"),
    "pulled_sources": ("error",),
    "provider_keys": ("nonce", "ciphertext", "last_four"),
    "question_vectors": ("vector",),
    "receipt_keys": ("key",),
    "receipts": ("by", "counts", "documents", "proof"),
    "service_tokens": ("token_sha256", "principals"),
    "serving": ("pinned_by", "pin_reason"),
    "slices": ("unlisted",),
    "source_records": ("source_type", "source_id", "text", "said", "page_uuid"),
    "record_texts": ("text",),
    "rag_settings": (
        *("operator_config", "embedding_model", "base_url", "embedder", "updated_by"),
    ),
    "syncs": ("last_error",),
    "tenants": ("config", "scanned"),
    "uploads": ("file_name", "uploaded_by"),
}
"""Columns without statistics, by table."""

UNSAMPLED_INDEX_COLUMNS: Mapping[str, tuple[int, ...]] = {
    "ix_events_tenant_caller": (2,),
    "ix_symbols_tenant_last_part": (2,),
}
"""Expressions without statistics, by index: their column numbers, from 1."""

SAMPLED_COLUMNS: Mapping[str, tuple[str, ...]] = {
    "access_scopes": ("tenant", "scope", "principal"),
    "catalog_marks": ("tenant", "tag"),
    "check_results": ("tenant", "asset", "name", "severity"),
    "checkpoints": ("tenant", "checkpoint_type", "state"),
    "code_runs": ("tenant",),
    "code_run_events": ("tenant", "kind", "document_id"),
    "document_index": (
        *("tenant", "document_id", "indexed_key", "document_key", "config_key"),
        *("parse_key", "chunk_set_key", "content_sha256"),
        *("failed_document_key", "failed_config_key"),
    ),
    "documents": (
        *("tenant", "document_id", "source", "media_type", "content_sha256", "access_scope"),
        *("document_key", "status", "failed_document_key", "failed_config_key"),
        *("embedded_sha256", "error_kind", "version"),
    ),
    "document_kinds": ("tenant", "document_id"),
    "edges": ("tenant", "chunk_set_key", "kind", "how"),
    "record_texts": ("tenant", "document_id", "content_sha256"),
    "record_files": ("tenant", "document_id", "content_sha256"),
    "derivations": ("tenant", "source", "fingerprint"),
    "relation_changes": ("tenant",),
    "relation_change_totals": ("tenant",),
    "moved_documents": ("tenant", "document_id", "successor"),
    "name_uses": ("tenant", "chunk_set_key"),
    "symbols": ("tenant", "chunk_set_key", "role", "content_hash"),
    "embedder_probes": ("tenant", "embedder_id", "probes_key", "vectors", "distances"),
    "embedding_batches": (
        *("tenant", "tag", "batch_id", "embedder_id", "embedder", "hashes", "state"),
    ),
    "erasures": ("tenant", "kind", "rule"),
    "dagster_histories": ("tenant", "instance", "place"),
    "installation_clock": ("boot_id",),
    "events": ("tenant", "kind"),
    "generations": (
        *("tenant", "generation_key", "index_name", "index_uuid", "embedder_id", "state"),
        "vectors_beside",
    ),
    "guideline_rules": ("tenant", "document_id", "parse_key"),
    "guideline_texts": ("tenant",),
    "pages": ("tenant", "uuid", "kind", "parent", "scope"),
    "scope_ancestors": ("tenant", "scope", "ancestor"),
    "installation": ("database",),
    "installation_homes": ("path", "host"),
    "installation_places": ("kind", "address"),
    "judged_questions": ("tenant",),
    "panel_codes": ("tenant", "token_id"),
    "panel_sessions": ("tenant", "token_id"),
    "held_records": ("tenant", "document_id", "source", "media_type", "content_sha256"),
    "held_uploads": ("tenant", "document_id", "source", "media_type", "content_sha256"),
    "held_texts": ("tenant", "document_id", "parse_key", "chunk_set_key"),
    "holds": ("tenant", "source", "document_id"),
    "knowledge_staging": (
        *("tenant", "entry_type", "content_key", "masked", "document_id", "exact_key"),
        *("problem_key", "kept_texts"),
    ),
    "projects": ("tenant", "state"),
    "experience_patterns": ("tenant",),
    "experience_merges": ("tenant", "way", "bounds"),
    "experience_questions": ("tenant", "use", "patterns"),
    "experience_feedback": ("tenant", "outcome"),
    "organizations": ("id", "chat_model"),
    "pulled_queries": ("tenant", "source", "source_type", "query_key"),
    "pulled_rows": ("tenant", "source", "source_type", "row_key"),
    "pulled_sources": ("tenant", "source"),
    "provider_keys": ("tenant", "organization", "provider", "master_key_id"),
    "question_vectors": ("tenant", "embedder_id", "question_sha256"),
    "record_clocks": ("tenant", "document_id", "part"),
    "security_changes": ("tenant", "kind", "name", "about"),
    "service_tokens": ("token_id", "tenant", "organization", "role"),
    "receipts": ("tenant", "kind", "rule", "previous", "hash"),
    "serving": ("tenant", "index_name", "index_uuid", "embedder_id"),
    "slices": ("tenant", "run_id", "config_key", "document_ids"),
    "source_records": (
        *("tenant", "source", "document_id", "record_key", "media_type", "content_sha256"),
    ),
    "syncs": (
        *("tenant", "source", "listing_digest", "config_key"),
        *("held_reason", "folders"),
    ),
    "rag_settings": ("tenant", "provider", "vector_backend"),
    "tenant_locks": ("tenant", "holder"),
    "tenants": ("id", "state", "origin", "profile", "organization", "project"),
    "tombstones": ("tenant", "document_id", "content_sha256"),
    "uploads": ("tenant", "document_id", "source", "path", "media_type", "content_sha256"),
    "usage": ("tenant", "provider", "model"),
}
"""Columns with statistics, by table: ids, hashes, states and names that operators give."""


def pairs(columns: Mapping[str, tuple[str, ...]]) -> set[tuple[str, str]]:
    return {(table, name) for table, names in columns.items() for name in names}


def test_every_column_that_could_hold_a_text_is_decided_on(installation: Installation) -> None:
    installation.session().catalog.close()
    with psycopg.connect(installation.environment["RAG_ASSETS_DATABASE_URL"]) as connection:
        found = set(connection.execute(HOLDS_TEXT).fetchall())
    decided, kept = pairs(UNSAMPLED_COLUMNS), pairs(SAMPLED_COLUMNS)
    assert found == decided | kept
    assert decided & kept == set()
    indexed = {index.name for table in metadata.tables.values() for index in table.indexes}
    assert set(UNSAMPLED_INDEX_COLUMNS) <= indexed


@pytest.fixture
def filled(installation: Installation) -> Installation:
    """Index twenty records and twenty files, each with unique words, and search for them."""
    folder = installation.add_tenant("acme", **FAST)
    source = {"name": "files", "type": "files", "root": str(folder)}
    installation.configure("acme", sources=[source, {"name": "pushed", "type": "records"}])
    session = installation.session()
    session.reconcile()
    ref = session.catalog.tenants.get("acme").ref
    for number in range(20):
        (folder / f"file{number}.md").write_text(f"# Heading{number}\n\nWords{number} of a file.\n")
        metadata = SourceMetadata(
            title=f"Oftitle{number}",
            tags=(f"oftag{number}",),
            metadata={f"ofkey{number}": f"ofvalue{number}"},
        )
        record = PushedRecord(
            "pushed", "page", f"ofid{number}", f"Oftext{number}.", "text/markdown", metadata
        )
        put_record(session.catalog.records, ref, record, scope="public")
    installation.synced("acme")
    for number in range(20):
        installation.search("acme", f"ofquestion{number}", caller={"name": f"ofcaller{number}"})
    installation.__dict__.pop("retriever").close()
    return installation


WORDS = (
    "oftitle",
    "oftag",
    "ofkey",
    "ofvalue",
    "ofid",
    "oftext",
    "heading",
    "ofquestion",
    "ofcaller",
)


def samples(installation: Installation) -> tuple[set[tuple[str, str]], str]:
    """Return the columns that have samples, and all samples."""
    url = installation.environment["RAG_ASSETS_DATABASE_URL"]
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("ANALYZE")
        rows = connection.execute(SAMPLES).fetchall()
    return {(table, name) for table, name, _ in rows}, " ".join(row[2] for row in rows).lower()


def test_postgres_samples_none_of_it(filled: Installation) -> None:
    sampled, text = samples(filled)
    assert sampled & pairs(dict(UNSAMPLED_COLUMNS)) == set()
    assert {table for table, _ in sampled if table.startswith("ix_")} == set()  # nor of expressions
    assert ("documents", "document_id") in sampled  # other columns do have samples
    assert [word for word in WORDS if word in text] == []


@pytest.mark.parametrize("way", ["record", "document", "file"])
def test_statistics_of_a_deleted_document_are_removed(filled: Installation, way: str) -> None:
    session = filled.session()
    ref = session.catalog.tenants.get("acme").ref
    rows = {d.uri: d for d in session.catalog.documents.all("acme")}
    if way == "file":
        gone = rows["files/file3.md"]
        (filled.home.parent / "sources" / "acme" / "file3.md").unlink()
        words = ["heading3"]
    else:
        gone = rows["pushed/page/ofid3"]
        words = ["oftitle3", "oftag3", "ofkey3", "ofvalue3", "oftext3"]
    if way == "record":
        assert remove_record(session.catalog.records, ref, gone.document_id, "chief")
    elif way == "document":
        assert session.catalog.removals.remove(ref, gone.document_id, "chief")
    filled.synced("acme")
    filled.search("acme", "anything")
    with psycopg.connect(
        filled.environment["RAG_ASSETS_DATABASE_URL"], autocommit=True
    ) as connection:
        connection.execute("ANALYZE")
        tables = connection.execute(
            "SELECT tablename FROM pg_tables WHERE schemaname = 'rag_catalog'"
        ).fetchall()
        for (table,) in tables:
            query = sql.SQL("SELECT t::text FROM {} t").format(sql.Identifier("rag_catalog", table))
            for (row,) in connection.execute(query):
                assert [word for word in words if _stands_in(row.lower(), word)] == [], table
        status = connection.execute(
            "SELECT status FROM rag_catalog.documents WHERE document_id = %s", [gone.document_id]
        ).fetchone()
    assert status == ("DELETED",)
    entries = filled.entries("acme")
    assert gone.uri not in {uri for uri, _, _ in entries.values()}


def _stands_in(row: str, word: str) -> bool:
    """Return whether a word occurs in a row, but not as the beginning of a longer one."""
    at = row.find(word)
    while at >= 0:
        if not row[at + len(word) : at + len(word) + 1].isdigit():
            return True
        at = row.find(word, at + 1)
    return False
