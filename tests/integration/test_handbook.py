"""The example handbook in the whole chain as the demo's tenant, in every format."""

from __future__ import annotations

import pytest

from examples.judge import HANDBOOK, TOP_K, Question, questions, rank, score
from rag_assets.cli.demo import INCLUDE, SETTINGS
from rag_assets.storage.catalog.documents.model import Document
from tests.installation import Installation

LOCKED = "policies/works-council-minutes.pdf"


@pytest.fixture(scope="module")
def stages(shared_installation: Installation) -> dict[str, dict[str, int]]:
    source = {"name": "files", "type": "files", "root": str(HANDBOOK), "include": INCLUDE}
    shared_installation.add_tenant("demo", root=HANDBOOK, **{**SETTINGS, "sources": [source]})
    return shared_installation.synced("demo")


def documents_of(installation: Installation) -> dict[str, Document]:
    documents = installation.session().catalog.documents.all("demo")
    return {document.uri: document for document in documents}


def paths(installation: Installation, question: Question) -> list[str]:
    hits = installation.search("demo", question.question, top_k=TOP_K)
    return [hit.uri.partition("/")[2] for hit in hits]


def test_every_document_but_the_locked_one_is_ready(
    shared_installation: Installation, stages: dict[str, dict[str, int]]
) -> None:
    documents = documents_of(shared_installation)
    failed = {uri: d.error_message or "" for uri, d in documents.items() if d.status != "READY"}
    assert failed.keys() == {f"files/{LOCKED}"}
    assert "add its password to parser.passwords" in failed[f"files/{LOCKED}"]
    assert len(documents) == stages["raw_documents"]["added"] == 33


def test_the_planted_credential_costs_no_chunk(stages: dict[str, dict[str, int]]) -> None:
    assert stages["chunks"]["masked_secrets"] == 1
    assert stages["chunks"]["dropped_secrets"] == 0


def test_the_copy_is_embedded_once(
    shared_installation: Installation, stages: dict[str, dict[str, int]]
) -> None:
    documents = documents_of(shared_installation)
    copy = documents["files/getting-started/welcome-pack/glossary.md"].chunk_count
    assert copy == documents["files/reference/glossary.md"].chunk_count > 0
    assert stages["search_index"]["upserted"] == stages["embeddings"]["embedded"] + copy


def test_questions_are_answered_from_every_format(
    shared_installation: Installation, stages: dict[str, dict[str, int]]
) -> None:
    asked = questions()
    found = {question.id: paths(shared_installation, question) for question in asked}
    assert not any(path.startswith("policies/draft") for hits in found.values() for path in hits)
    missed = [question.id for question in asked if rank(question, found[question.id]) is None]
    assert score(asked, found).top_five >= 0.9, missed
    assert {q.suffix for q in asked if q.id not in missed} == {q.suffix for q in asked}
