"""Random trees, moves, grants, revocations and guests, against an oracle, through every interface.

What is asked for are the marks of some documents: those come back that the asker reads by now,
whether or not entries have followed what was moved, and nothing that the asker does not read.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest
from pydantic import SecretStr

from rag_assets.billing.key_ring import KeyRing
from rag_assets.pipeline.tenancy import reconcile_tenants
from rag_assets.retrieval.model import Caller, SearchRequest
from tests.driving import Driver
from tests.installation import Installation
from tests.workspaces import ADMIN, Person, Workspace, workspace_of

if TYPE_CHECKING:
    from llmock.pytest_plugin import LLMock

pytestmark = pytest.mark.slow

PAGES = 200
DEEPEST = 12
STEPS = 110
ASKED = 12
GROUPS = ("crew", "partners")
NAMES = ("ada", "bob", "gil", "group:crew", "group:partners", "members")
PEOPLE = (
    Person("ada"),
    Person("bob", groups=("crew",)),
    Person("eve", "member", GROUPS),
    ADMIN,
    Person("gil", "guest"),
    Person("guy", "guest", ("partners",)),
    Person("liv", "guest", GROUPS),
)
MARK = re.compile(r"\bmarkp\d+\b")


@dataclass
class Oracle:
    """What pages say, and who reads them by that.

    Attributes:
        said: of each known page: parent, inherit, read, archived, ai.
        unindexed: pages whose entries the last sync has taken out.
    """

    said: dict[str, dict[str, Any]] = field(default_factory=dict)
    unindexed: set[str] = field(default_factory=set)

    def path(self, uuid: str) -> list[str] | None:
        """The page and all above it; None where one of these is not known."""
        path = []
        while uuid != "root":
            if uuid not in self.said:
                return None
            path.append(uuid)
            uuid = self.said[uuid]["parent"]
        return path

    def is_out(self, uuid: str) -> bool:
        """Whether a page, or one above it as far as it is known, is out of the knowledge."""
        while uuid in self.said:
            if self.said[uuid]["archived"] or self.said[uuid]["ai"] == "off":
                return True
            uuid = self.said[uuid]["parent"]
        return False

    def reads(self, person: Person, uuid: str) -> bool:
        """Whether somebody reads a page."""
        path = self.path(uuid)
        if path is None or self.is_out(uuid):
            return False
        for one in path:
            if {*self.said[one]["read"]} & {*person.principals}:
                return True
            if not self.said[one]["inherit"]:
                return False
        return "members" in person.principals

    def below(self, uuid: str) -> set[str]:
        """A page and all below it."""
        found = {uuid}
        while more := {u for u, s in self.said.items() if s["parent"] in found} - found:
            found |= more
        return found


@dataclass
class World:
    """A workspace, what its pages say, and what happens next."""

    workspace: Workspace
    installation: Installation
    rng: random.Random
    oracle: Oracle
    marks: dict[str, str]

    def put(self, uuid: str, **changes: Any) -> None:
        """Put a page; one that would be below itself is refused, and all stays as it was."""
        said = {"parent": "root", "inherit": True, "read": [], "archived": False, "ai": "on"}
        said |= self.oracle.said.get(uuid, {}) | changes
        cyclic = said["parent"] in self.oracle.below(uuid)
        parent = None if said["parent"] == "root" else said["parent"]
        body = {**said, "parent": parent}
        answer = self.workspace.send("PUT", f"/rag/tree/{uuid}", body, by=ADMIN)
        assert answer.status_code == (422 if cyclic else 200), answer.text
        if not cyclic:
            self.oracle.said[uuid] = said

    def change(self) -> None:
        """Something that an application may do."""
        rng, uuids = self.rng, [*self.oracle.said]
        uuid = rng.choice(uuids)
        kind = rng.choices(
            ["move", "grant", "revoke", "inherit", "archive", "ai", "delete"],
            [5, 5, 3, 3, 2, 2, 1],
        )[0]
        said = self.oracle.said[uuid]
        if kind == "move":
            self.put(uuid, parent=rng.choice(["root", *uuids]))
        elif kind == "grant":
            self.put(uuid, read=sorted({*said["read"], rng.choice(NAMES)}))
        elif kind == "revoke":
            self.put(uuid, read=said["read"][1:])
        elif kind == "inherit":
            self.put(uuid, inherit=not said["inherit"])
        elif kind == "archive":
            self.put(uuid, archived=not said["archived"])
        elif kind == "ai":
            self.put(uuid, ai="on" if said["ai"] == "off" else "off")
        elif len(gone := self.oracle.below(uuid)) < 10:
            assert self.workspace.send("DELETE", f"/rag/tree/{uuid}", by=ADMIN).status_code == 200
            for one in gone:
                self.oracle.said.pop(one, None)
                self.marks.pop(one, None)

    def sync(self) -> None:
        """Index what waits, and let entries follow."""
        self.workspace.driver.sync(self.workspace.id)
        self.oracle.unindexed = {uuid for uuid in self.marks if self.oracle.is_out(uuid)}


def by_http(world: World, person: Person, query: str) -> str:
    return json.dumps(world.workspace.ask(person, query))


def by_answer(world: World, person: Person, query: str) -> str:
    body = {"query": query, "mode": "text", "top_k": 20}
    answer = world.workspace.send("POST", "/rag/answer", body, by=person)
    assert answer.status_code == 200, answer.text
    # The model is told nothing else either.
    return json.dumps(answer.json()["hits"])


def by_agent(world: World, person: Person, query: str) -> str:
    call = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {"name": "rag_search", "arguments": {"query": query, "top_k": 20}},
    }
    answer = world.workspace.send("POST", "/mcp", call, by=person)
    return str(answer.json()["result"]["content"])


def by_python(world: World, person: Person, query: str) -> str:
    caller = Caller(
        principals=(person.name, *(f"group:{group}" for group in person.groups)),
        role=person.role,
    )
    request = SearchRequest(query=query, mode="text", top_k=20, caller=caller)
    found = world.installation.retriever.search(world.workspace.id, request)
    return " ".join(hit.text for hit in found.hits)


def by_list(world: World, person: Person, query: str) -> str:
    answer = world.workspace.send("GET", "/rag/documents", by=person, limit=1_000)
    return str(answer.text)


def by_resource(world: World, person: Person, query: str) -> str:
    call = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "resources/read",
        "params": {"uri": "rag://documents"},
    }
    return str(world.workspace.send("POST", "/mcp", call, by=person).text)


INTERFACES: tuple[Callable[[World, Person, str], str], ...] = (
    *(by_http, by_answer, by_agent, by_python),
    *(by_list, by_resource),
)
WHOLE = {by_list, by_resource}
"""Interfaces that list all that is read, whatever is asked."""


@pytest.fixture
def world(
    request: pytest.FixtureRequest,
    shared_installation: Installation,
    driver: Driver,
    llmock: LLMock,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[World]:
    monkeypatch.setenv("RAG_ASSETS_PRIVATE_ENDPOINTS", "127.0.0.1")
    seed = request.node.callspec.params["seed"]
    rng = random.Random(f"tree {seed}")
    model = {"model": "gpt-4.1-mini", "provider": "openai", "base_url": llmock.base_url("openai")}
    with workspace_of(
        shared_installation,
        driver,
        f"readers-{seed}",
        chat_model=model,
        # By vectors that mean nothing, a mark is anywhere in a ranking.
        retrieval={"mode": "text"},
    ) as workspace:
        session = driver.session
        reconcile_tenants(session.catalog, session.settings)
        ref = session.catalog.tenants.get(workspace.id).ref
        KeyRing(session.catalog, session.settings).set(ref, "openai", SecretStr("sk-test-0123456"))
        made = World(workspace, shared_installation, rng, Oracle(), {})
        depth = {"root": 0}
        parents = {}
        for number in range(PAGES):
            parent = rng.choice([uuid for uuid, at in depth.items() if at < DEEPEST])
            uuid = f"p{number}"
            parents[uuid], depth[uuid] = parent, depth[parent] + 1
            made.marks[uuid] = f"mark{uuid}"
        workspace.push({uuid: f"harbour {mark}" for uuid, mark in made.marks.items()})
        # In any order: most pages come before the one above them.
        for uuid in rng.sample(sorted(parents), PAGES):
            read = rng.sample(NAMES, rng.choice([0, 0, 0, 1, 2]))
            inherit = rng.random() < 0.85
            made.put(uuid, parent=parents[uuid], read=read, inherit=inherit)
        made.sync()
        yield made


@pytest.fixture(scope="module")
def driver(shared_installation: Installation) -> Driver:
    return Driver(shared_installation)


def explained(world: World, person: Person, uuid: str) -> dict[str, Any]:
    """What decides whether somebody reads a page, by the oracle and by the service."""
    asked = {"page_uuid": uuid, "principal": list(person.principals)}
    told = world.workspace.send("GET", "/rag/access", by=ADMIN, **asked).json()
    documents = world.workspace.catalog.documents.all(world.workspace.id, deleted=True)
    return {
        "path": [(one, world.oracle.said.get(one)) for one in world.oracle.path(uuid) or [uuid]],
        "told": told,
        "documents": [(d.access_scope, d.status) for d in documents if d.page_uuid == uuid],
    }


@pytest.mark.parametrize("seed", range(2))
def test_everybody_finds_exactly_what_they_read(world: World, seed: int, llmock: LLMock) -> None:
    rng, found_something = world.rng, 0
    for step in range(STEPS):
        world.change()
        if rng.random() < 0.12:
            world.sync()
        llmock.reply("It is in the harbour [1].")
        person, interface = rng.choice(PEOPLE), INTERFACES[step % len(INTERFACES)]
        asked = rng.sample(sorted(world.marks), min(ASKED, len(world.marks)))
        about = [*world.marks] if interface in WHOLE else asked
        readable = {uuid for uuid in world.marks if world.oracle.reads(person, uuid)}
        allowed = {world.marks[uuid] for uuid in readable}
        expected = {world.marks[u] for u in about if u in readable - world.oracle.unindexed}
        told = interface(world, person, " ".join(world.marks[uuid] for uuid in asked))
        found = {*MARK.findall(told)}
        extra = [explained(world, person, mark[4:]) for mark in found - allowed]
        assert not extra, (step, person, interface.__name__, extra)
        assert expected <= found, (step, person, interface.__name__, expected - found)
        found_something += bool(found)
    assert found_something > STEPS / 3
