"""Every text column is scanned when rules for credentials change, or has a reason not to be."""

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from sqlalchemy import ARRAY, BigInteger, Column, Enum, MetaData, String, Table, Text
from sqlalchemy.dialects.postgresql import JSONB

from rag_assets.plugins.system import Migrations, System
from rag_assets.storage.catalog.erasure.traces import list_scanned_columns, list_text_columns
from rag_assets.storage.catalog.tables import list_all_tables
from rag_assets.testing import require_texts_declared

GLOSSARY = Path(__file__).resolve().parents[4] / "systems" / "glossary"
KEYS = {
    *("path", "uploaded_by", "updated_by", "blobs", "organization", "error_kind"),
    *("tenant", "document_id", "source", "source_type", "source_id", "page_uuid", "question_id"),
    "awaited_page",
    "embedder_id",
    *("scope", "access_scope", "principal", "principals", "token_id", "run_id", "batch_id", "tag"),
    *("provider", "model", "media_type", "record_key", "listing_digest", "digest", "asset", "name"),
    *("indexed_key", "document_key", "config_key", "parse_key", "chunk_set_key", "generation_key"),
    *("failed_document_key", "failed_config_key", "probes_key", "question_sha256", "master_key_id"),
    *("content_sha256", "embedded_sha256", "pool", "document_ids", "index_name", "index_uuid"),
    *("kind", "state", "status", "role", "severity", "origin", "checkpoint_type", "last_four"),
    *("content_key", "exact_key", "problem_key", "kept_texts", "masked", "failure", "external_id"),
    *("contributed_by", "requested_by", "merged_by", "split_by", "asked_by", "given_by"),
    *("outcome", "way", "use", "patterns", "bounds", "how", "version", "content_hash"),
    *("vector_backend", "vectors_beside", "query_key", "row_key"),
    *("successor", "entry_type", "by", "pinned_by", "holder", "parse_keys", "chunk_set_keys"),
    *("hash", "previous"),
}
"""Columns of ids, hashes and words of ours."""
OTHERS: Mapping[str, str] = {
    "documents.uri": "names enter keys, and are masked with their rows",
    "documents.title": "likewise",
    "documents.said_title": "likewise",
    "documents.tags": "likewise",
    "documents.metadata": "likewise",
    "document_kinds.kinds": "names in masked texts, found anew when more of these are masked",
    "symbols.symbol": "likewise",
    "symbols.short": "likewise",
    "edges.stated_of": "likewise",
    "edges.target": "likewise",
    "edges.evidence": "likewise",
    "edges.path": "likewise",
    "name_uses.names": "likewise",
    "dagster_histories.instance": "the id of a Dagster instance",
    "dagster_histories.place": "a folder of Dagster, and a machine",
    "derivations.fingerprint": "a hash",
    "derivations.unresolved": "made of masked texts; made anew when these are",
    "source_records.text": "what a source pushed, as it pushed it",
    "source_records.said": "likewise",
    "record_texts.text": "likewise",
    "record_clocks.part": "a hash",
    "held_records.text": "likewise",
    "held_records.said": "likewise",
    "embedding_batches.embedder": "configuration, in which credentials are refused",
    "generations.embedder": "likewise",
    "generations.recipe": "likewise",
    "generations.thresholds": "figures, a name, and a reason that is masked when it is set",
    "pages.uuid": "an id, in which credentials are refused",
    "pages.parent": "likewise",
    "pages.readers": "likewise",
    "scope_ancestors.ancestor": "made of ids of pages",
    "rag_settings.operator_config": "configuration, in which credentials are refused",
    "rag_settings.embedder": "likewise",
    "rag_settings.base_url": "likewise",
    "rag_settings.embedding_model": "a model's name",
    "projects.owner_token": "the name of a token, masked when the token is read",
    "projects.owner_organization": "an id of the application",
    "erasures.rule": "a word of ours, or a setting",
    "erasures.counts": "numbers",
    "erasures.progress": "keys",
    "security_changes.about": "names of principals, in which credentials are refused, and hashes",
    "receipts.rule": "a word of ours, or a setting; sealed by hashes",
    "receipts.counts": "numbers",
    "receipts.documents": "hashes",
    "receipts.proof": "numbers and names of columns",
}


def test_every_column_of_texts_is_scanned_or_named_with_its_reason() -> None:
    scanned = {column.name.removeprefix("rag_catalog.") for column in list_scanned_columns()}
    texts = {
        f"{table.name}.{column.name}"
        for table in list_all_tables()
        if "tenant" in table.c
        for column in list_text_columns(table)
        if column.name not in KEYS
    }
    assert texts - scanned - OTHERS.keys() == set()
    assert scanned & OTHERS.keys() == set()


NOTES = Table(
    "notes",
    MetaData(),
    *(Column("tenant", Text), Column("id", BigInteger)),
    *(Column("body", Text), Column("title", String(50)), Column("tags", ARRAY(String))),
    *(Column("payload", JSONB), Column("counts", ARRAY(BigInteger))),
    Column("state", Enum("open", "done", name="note_state")),
)
TEXTS = ("notes.body", "notes.title", "notes.tags", "notes.payload")


def build_system(*texts: str) -> System:
    migrations = Migrations(package="notes", head="0001")
    tables = {"notes": f"{__name__}:NOTES"}
    return System(name="notes", tables=tables, migrations=migrations, texts=texts)


def test_a_system_that_declares_each_column_of_texts_passes() -> None:
    require_texts_declared(build_system(*TEXTS))
    require_texts_declared(build_system(*TEXTS[1:]), exempt={TEXTS[0]: "a word of ours"})


@pytest.mark.parametrize("forgotten", TEXTS)
def test_a_column_of_texts_that_a_system_forgets_is_named(forgotten: str) -> None:
    with pytest.raises(AssertionError, match=forgotten):
        require_texts_declared(build_system(*(name for name in TEXTS if name != forgotten)))


def test_an_exemption_for_no_column_of_texts_is_named() -> None:
    with pytest.raises(AssertionError, match=r"notes\.gone"):
        require_texts_declared(build_system(*TEXTS), exempt={"notes.gone": "a hash"})


def test_the_example_system_declares_its_columns_of_texts() -> None:
    """Load it in another process, because its table would join the catalog's."""
    code = (
        "from glossary_system import SYSTEM;"
        "from rag_assets.testing import require_texts_declared;"
        "require_texts_declared(SYSTEM)"
    )
    paths = os.pathsep.join([str(GLOSSARY), *sys.path])
    command = [sys.executable, "-c", code]
    subprocess.run(command, env={**os.environ, "PYTHONPATH": paths}, check=True)
