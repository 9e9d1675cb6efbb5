"""The example's workspace agrees with its questions, and its people may read the answers."""

from __future__ import annotations

import json
from collections import Counter
from functools import cache
from typing import Any

import pytest

from examples.workspace.data import Question, contents, people, questions, rows
from rag_assets.common.principals import MEMBERS
from rag_assets.common.tokens import count_tokens
from rag_assets.ingest.sources.record_bodies import BODIES, TypedBody
from rag_assets.ingest.sources.records import ROOT, build_page_scope
from rag_assets.search.words import extract_content_words
from rag_assets.systems.workspace.tree import Page, create_root, decide_access

QUESTIONS = questions()
LONG = 1_200
SHARED_WORDS = 0.35
"""Share of a question's words that may stand in the words of its answer."""


@cache
def records() -> dict[tuple[str, str], dict[str, Any]]:
    return {(row["type"], row["id"]): row for row in rows("records")}


@cache
def tree() -> dict[str, Page]:
    pages = {ROOT: create_root()}
    for row in rows("tree"):
        said = {"parent": row["parent"] or ROOT, "readers": tuple(row.get("read", ()))}
        known = {name: row[name] for name in ("kind", "inherit", "archived") if name in row}
        pages[row["uuid"]] = Page(uuid=row["uuid"], ai=row.get("ai") != "off", **said, **known)
    return pages


def path_of(uuid: str) -> list[Page]:
    page = tree()[uuid]
    return [*([] if page.parent is None else path_of(page.parent)), page]


def body_of(row: dict[str, Any]) -> TypedBody:
    given = {name: value for name, value in row.items() if name not in ("op", "type", "id")}
    return BODIES[row["type"]](**given)


def test_all_types_are_there_in_a_tree_with_readers() -> None:
    counts = Counter(type_ for type_, _ in records())
    assert counts.keys() == BODIES.keys()
    assert counts.total() >= 150
    assert len(records()) == counts.total()
    hung = {body_of(row).find_page_uuid(id_) for (_, id_), row in records().items()} - {None}
    assert hung <= tree().keys()
    readers = {name for page in tree().values() for name in page.readers}
    assert {"nora", "group:board", "group:distributors"} <= readers
    assert {page.is_excluded for page in tree().values()} == {True, False}
    assert {row["name"] for row in rows("records") if row["type"] == "file"} == {
        row["name"] for row in rows("records") if row["id"] in contents()
    }


def test_some_pages_are_long_and_no_two_blocks_are_equal() -> None:
    pages = [row for row in rows("records") if row["type"] == "page"]
    texts = [[page["title"], *(block["text"] for block in page["blocks"])] for page in pages]
    assert sum(sum(count_tokens(text)) > LONG for text in texts) >= 5
    long = [text for page in texts for text in page[1:] if len(text) > 40]
    assert len(long) == len({*long})


def test_halves_are_equal_and_all_types_with_a_text_of_their_own_answer() -> None:
    assert len({one.id for one in QUESTIONS}) == len({one.question for one in QUESTIONS}) == 60
    assert Counter(one.half for one in QUESTIONS) == {"tuned": 30, "untouched": 30}
    # A record of the type block is a part of its page.
    assert {one.type for one in QUESTIONS} == BODIES.keys() - {"block"}


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda question: question.id)
def test_a_question_is_answered_by_its_block_for_its_asker(question: Question) -> None:
    row = records()[question.type, question.record]
    blocks = {block["block_id"]: block["text"] for block in row.get("blocks", ())}
    if question.type == "page":
        holding = [id_ for id_, text in blocks.items() if question.answer in text]
        assert holding == [question.block_id]
        text = blocks[question.block_id or ""]
    elif question.type == "file":
        text = " ".join(contents()[question.record].decode().split())
    else:
        text = json.dumps(row, ensure_ascii=False)
    assert question.answer in text
    asked, told = extract_content_words(question.question), extract_content_words(question.answer)
    assert len(asked & told) <= SHARED_WORDS * len(asked)
    hangs_on = body_of(row).find_page_uuid(question.record)
    if hangs_on is not None:
        person = people()[question.asker]
        names = (person.name, *(f"group:{group}" for group in person.groups))
        names += (MEMBERS,) if person.role == "member" else ()
        path = path_of(hangs_on)
        grants = {build_page_scope(page.uuid): page.readers for page in path}
        assert decide_access(path, grants, names).readable
