"""Answers do not depend on documents that the caller may not read, here or in other tenants.

First an oracle: two readable documents each contain one of two words, and the first hit shows which
word is rarer in everything that was counted. Then random trees, readers and texts: each answer is
the same, byte by byte, before documents are added that the caller may not read, with them, and
after they are removed.
"""

from __future__ import annotations

import json
import os
import random
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rag_assets.search import Retriever
from rag_assets.search.access import FlatScopes, ScopedDocument
from rag_assets.search.model import Caller, SearchAnswer, SearchRequest
from tests.back_ends import EACH_BACK_END
from tests.cross_encoders import cross_encoder
from tests.driving import Driver
from tests.installation import FAST, Installation
from tests.integration.systems.workspace.marked_tree import ADMIN, Person, Workspace, workspace_of

pytestmark = EACH_BACK_END

RARE_WORDS = ("merger", "layoff", "penguin", "слияние", "合并")
PLAIN_WORD = "gazebo"
"""The word that each rare word is compared with."""
VOCABULARY = (
    *("valve", "pump", "boiler", "gasket", "valve-7", "pressure", "leak", "inspect", "the", "of"),
    *("opens", "E-4711", "Ventil", "Überdruck", "Dichtung", "клапан", "давление", "утечка"),
    *("صمام", "ضغط", "वाल्व", "दबाव", "阀门泄漏", "圧力計の点検", "🚒"),
)
PAGES, HIDDEN_PAGES, QUESTIONS = 12, 12, 3
READERS = (Person("ada"), Person("gil", "guest"), Person("bob", groups=("crew",)))
HIDDEN_FROM_ALL = ("eve", "group:board")
MODES: tuple[dict[str, Any], ...] = (
    {"mode": "text"},
    {"mode": "hybrid"},
    {"mode": "knn"},
    {"mode": "hybrid", "rerank": True},
    {"mode": "text", "top_k": 3},
    {"mode": "hybrid", "min_score": 0.99},
)
"""Requests of each question; the last one finds nothing near enough, and asks back."""
FIRST, *MORE = map(int, os.environ.get("RAG_ASSETS_TEST_TREES", "0,1,2").split(","))
SEEDS = (FIRST, *(pytest.param(seed, marks=pytest.mark.long) for seed in MORE))


@pytest.fixture(scope="module")
def driver(shared_installation: Installation) -> Driver:
    return Driver(shared_installation)


def write_oracle(folder: Path) -> None:
    """Write documents of equal length, one for each word."""
    for number, word in enumerate((*RARE_WORDS, PLAIN_WORD)):
        (folder / f"{number}.md").write_text(f"The note {number} is about {word} alone.\n")


def write_secrets(folder: Path) -> None:
    """Write documents that hold every other rare word."""
    folder.mkdir(exist_ok=True)
    for number in range(30):
        (folder / f"{number}.md").write_text(f"Secret {number}: {' '.join(RARE_WORDS[::2])}.\n")


def ask_oracle(installation: Installation, tenant: str) -> list[SearchAnswer]:
    """Ask word by word; return the answers without their durations."""
    answers = []
    for mode in ("text", "hybrid"):
        for word in RARE_WORDS:
            request = SearchRequest(
                query=f"{word} {PLAIN_WORD}", mode=mode, caller=Caller(principals=("reader",))
            )
            answer = installation.retriever.search(tenant, request)
            answers.append(replace(answer, debug=replace(answer.debug, latency_ms={})))
    return answers


def test_no_word_of_another_tenant_changes_an_answer(
    shared_installation: Installation, driver: Driver
) -> None:
    write_oracle(shared_installation.add_tenant("asking", **FAST))
    driver.sync("asking")
    before = ask_oracle(shared_installation, "asking")
    write_secrets(shared_installation.add_tenant("others", **FAST))
    driver.sync("others")
    assert ask_oracle(shared_installation, "asking") == before


@pytest.mark.parametrize("many_scopes", [1_000, 0], ids=["filtered", "more scopes than a filter"])
def test_no_word_of_an_unreadable_document_changes_an_answer(
    shared_installation: Installation,
    driver: Driver,
    monkeypatch: pytest.MonkeyPatch,
    many_scopes: int,
) -> None:
    monkeypatch.setattr("rag_assets.search.plan.MANY_SCOPES", many_scopes)
    tenant = f"scoped-{many_scopes}"
    folder = shared_installation.add_tenant(tenant, **FAST)
    write_oracle(folder)
    hidden = folder.parent / f"{tenant}-hidden"
    write_secrets(hidden)
    readable = {"name": "files", "type": "files", "root": str(folder)}
    secret = {"name": "hidden", "type": "files", "root": str(hidden), "scope": "board"}
    driver.sync(tenant)
    before = ask_oracle(shared_installation, tenant)
    shared_installation.configure(tenant, sources=[readable, secret])
    driver.sync(tenant)
    board = {"principals": ["director"]}
    driver.session.catalog.access.grant(
        driver.session.catalog.tenants.get(tenant).ref, "board", board["principals"]
    )
    assert len(shared_installation.search(tenant, "secret", mode="text", caller=board)) == 5
    assert ask_oracle(shared_installation, tenant) == before


class WithoutBoard(FlatScopes):
    """A policy of an application that refuses documents which the scopes in the index allow."""

    def permits(self, caller: Caller, document: ScopedDocument) -> bool:
        return document.access_scope != "board"


def test_unreadable_quotations_displace_none_that_is_readable(
    shared_installation: Installation, driver: Driver
) -> None:
    question = "an order may have at most ten lines"
    root = shared_installation.home.parent / "sources" / "quotations"
    steps = "".join(f"    step_{n} = count_stock(part_{n})\n" for n in range(40))
    open_files = {
        "refuse.py": f"def refuse(order):\n{steps}    raise ValueError('{question}')\n",
        **{f"near{n}.py": f"# at most ten order lines may have an order {n}\n" for n in range(15)},
        **{f"far{n}.py": f"# an order of customer {n}\n" for n in range(120)},
    }
    hidden_files = {f"hidden{n}.py": f"# {question}: {n}\n" for n in range(25)}
    for folder, files in (("open", open_files), ("hidden", hidden_files)):
        (root / folder).mkdir(parents=True)
        for name, text in files.items():
            (root / folder / name).write_text(text)
    sources = [
        {"name": name, "root": str(root / name), "include": ["**/*.py"], "scope": scope}
        for name, scope in (("open", "public"), ("hidden", "board"))
    ]
    entry = {**FAST, "profile": "code-memory", "organization": "acme", "project": "quotations"}
    shared_installation.add_tenant("quotations", **entry, sources=sources)
    driver.sync("quotations")
    session = driver.session
    session.catalog.access.grant(session.catalog.tenants.get("quotations").ref, "board", ["ada"])
    request = SearchRequest.of(query=question, caller={"principals": ["ada"]})
    with closing(
        Retriever(session.catalog, session.store, session.embedders, policy=WithoutBoard())
    ) as retriever:
        hits = retriever.search("quotations", request).hits
    assert hits[0].uri == "open/refuse.py"


def test_no_clarification_names_what_is_unreadable(
    shared_installation: Installation, driver: Driver
) -> None:
    root = shared_installation.home.parent / "sources" / "code"
    readable, hidden = (
        {"name": name, "root": str(root / name), "include": ["**/*.php"], "scope": scope}
        for name, scope in (("app", "public"), ("secret", "board"))
    )
    for name, classes in (("app", ("Invoice", "Order")), ("secret", ("Invoices", "Invoicing"))):
        (root / name).mkdir(parents=True)
        for class_ in classes:
            text = f"<?php\nclass {class_}Sender {{ public function send() {{ return 1; }} }}\n"
            (root / name / f"{class_}Sender.php").write_text(text)
    entry = {**FAST, "profile": "code-memory", "organization": "acme", "project": "code"}
    shared_installation.add_tenant("code", root=root, **{**entry, "sources": [readable]})

    def asked_back() -> list[SearchAnswer]:
        driver.sync("code")
        answers = [
            shared_installation.retriever.search(
                "code", SearchRequest(query=query, min_score=0.99, mode="hybrid")
            )
            for query in ("InvoicSender", "what sends invoicing", "nothing like it")
        ]
        return [replace(answer, debug=replace(answer.debug, latency_ms={})) for answer in answers]

    before = asked_back()
    assert before[0].clarification is not None
    assert before[0].clarification.names
    shared_installation.configure("code", sources=[readable, hidden])
    assert asked_back() == before


@pytest.fixture(params=SEEDS)
def world(
    shared_installation: Installation,
    driver: Driver,
    tmp_path_factory: pytest.TempPathFactory,
    request: pytest.FixtureRequest,
) -> Iterator[tuple[Workspace, random.Random]]:
    """Create a workspace with a random tree of pages; yield it with its random generator."""
    drawn = random.Random(request.param)
    encoder = cross_encoder(tmp_path_factory.mktemp("encoder") / "model")
    retrieval = {"rerank": {"folder": str(encoder), "by_default": False}}
    tenant = f"tree-{request.param}"
    with workspace_of(shared_installation, driver, tenant, retrieval=retrieval) as made:
        uuids = ["root"]
        for number in range(PAGES):
            parent, uuid = drawn.choice(uuids), f"page-{number}"
            read = drawn.sample([*READERS[1].principals, "group:crew"], drawn.randint(0, 2))
            made.put(uuid, parent=None if parent == "root" else parent, read=read)
            made.push({uuid: text_of(drawn)})
            made.push({f"{uuid}-comment": text_of(drawn)}, kind="comment", on=uuid)
            uuids.append(uuid)
        made.sync()
        yield made, drawn


def text_of(drawn: random.Random) -> str:
    """Draw words, some of them repeatedly."""
    return " ".join(drawn.choices(VOCABULARY, k=drawn.choice((3, 8, 20, 60))))


def test_no_answer_depends_on_unreadable_pages(world: tuple[Workspace, random.Random]) -> None:
    workspace, drawn = world
    questions = [" ".join(drawn.sample(VOCABULARY, drawn.randint(1, 6))) for _ in range(QUESTIONS)]
    before = answers_of(workspace, questions)
    hidden = [f"hidden-{number}" for number in range(HIDDEN_PAGES)]
    for number, uuid in enumerate(hidden):
        parent = drawn.choice([None, f"page-{drawn.randrange(PAGES)}", *hidden[:number]])
        read = drawn.sample(HIDDEN_FROM_ALL, drawn.randint(1, 2))
        workspace.put(uuid, parent=parent, inherit=False, read=read)
        # Copies of readable documents, and words that no readable document contains.
        workspace.push({uuid: f"{drawn.choice(questions)} {text_of(drawn)}"})
        comments = {f"{uuid}-{copy}": text_of(drawn) for copy in range(drawn.randint(0, 4))}
        workspace.push(comments, kind="comment", on=uuid) if comments else None
    workspace.sync()
    eve = Person("eve", "guest")
    assert any(workspace.ask(eve, question) for question in questions)
    assert answers_of(workspace, questions) == before
    for uuid in hidden[::2]:
        workspace.send("DELETE", f"/rag/tree/{uuid}", by=ADMIN)
    workspace.sync()
    assert answers_of(workspace, questions) == before


def answers_of(workspace: Workspace, questions: list[str]) -> list[str]:
    """Return the text of each answer to each reader, with its status, without durations."""
    texts = []
    for reader in READERS:
        for question in questions:
            for options in MODES:
                body = {"query": question, "top_k": 20, **options}
                answer = workspace.send("POST", "/rag/query", body, by=reader)
                assert answer.status_code == 200, answer.text
                content = answer.json()
                assert content["degraded"] == []
                assert content["debug"].pop("latency_ms")
                texts.append(json.dumps(content, sort_keys=True))
        answer = workspace.send("GET", "/rag/status", by=reader)
        assert answer.status_code == 200, answer.text
        texts.append(json.dumps(answer.json(), sort_keys=True))
    assert any('"hits": [{' in text for text in texts)
    assert any('"needs_clarification": true' in text for text in texts)
    return texts
