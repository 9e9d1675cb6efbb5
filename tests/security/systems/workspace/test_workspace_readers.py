"""Random trees, moves, grants, revocations and guests, checked by an oracle on every interface.

Questions ask for the marks of some pages and comments. The response must contain all marks that the
caller may read at that moment, even if entries have not followed a move yet, and no other mark. A
mark is also the id of its record, so any mention of the record counts. Vectors have no meaning
here, so vector searches are limited to pages below which every record can be found. Every other
tree has its vectors in pgvector.
"""

from __future__ import annotations

import os
import random
import re
from collections.abc import Iterator, Set
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest
from pydantic import SecretStr

from rag_assets.billing.key_ring import KeyRing
from tests.back_ends import BACK_ENDS, BackEnd
from tests.driving import Driver
from tests.installation import Installation
from tests.integration.systems.workspace.marked_tree import (
    ADMIN,
    Person,
    Workspace,
    served,
    workspace_of,
)
from tests.security.systems.workspace.interfaces import (
    INTERFACES,
    MOST,
    WHOLE,
    WITH_MODES,
    Asked,
    Interfaces,
    interfaces_of,
)

if TYPE_CHECKING:
    from llmock.pytest_plugin import LLMock

pytestmark = pytest.mark.slow

PAGES = 200
MAX_DEPTH = 12
COMMENTS = 60
STEPS = 121
ASKED = 12
NARROWED = 0.4
"""Share of questions that are narrowed to what lies below a page."""
BY_VECTORS = 0.6
"""Share of questions that are asked by vectors, of those that can be."""
FIRST, *MORE = map(int, os.environ.get("RAG_ASSETS_TEST_TREES", "0,1").split(","))
SEEDS = (FIRST, *(pytest.param(seed, marks=pytest.mark.nightly) for seed in MORE))
"""Trees that are tried, in CI one; `make fuzz` takes others each time."""
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
AGENTS = (PEOPLE[1], PEOPLE[5])
"""Who has an agent over standard input and output: each is a process."""
MARK = re.compile(r"\bmark[pc]\d+\b")


@dataclass
class Oracle:
    """The state of pages, and the readers that follow from it.

    Attributes:
        said: of each known page: parent, inherit, read, archived, ai.
        unindexed: pages whose entries the last sync has removed.
    """

    said: dict[str, dict[str, Any]] = field(default_factory=dict)
    unindexed: set[str] = field(default_factory=set)

    def path(self, uuid: str) -> list[str] | None:
        """Return the page and all pages above it; None if one of them is unknown."""
        path = []
        while uuid != "root":
            if uuid not in self.said:
                return None
            path.append(uuid)
            uuid = self.said[uuid]["parent"]
        return path

    def is_out(self, uuid: str) -> bool:
        """Return whether a page, or a known page above it, is excluded from searches."""
        while uuid in self.said:
            if self.said[uuid]["archived"] or self.said[uuid]["ai"] == "off":
                return True
            uuid = self.said[uuid]["parent"]
        return False

    def reads(self, person: Person, uuid: str) -> bool:
        """Return whether a person reads a page."""
        return not self.is_out(uuid) and self.would_read(person, uuid)

    def would_read(self, person: Person, uuid: str) -> bool:
        """Return whether a person reads a page, ignoring exclusion."""
        path = self.path(uuid)
        if path is None:
            return False
        for one in path:
            if {*self.said[one]["read"]} & {*person.principals}:
                return True
            if not self.said[one]["inherit"]:
                return False
        return "members" in person.principals

    def scope(self, uuid: str) -> str | None:
        """Return the nearest page that defines a page's readers; None if an ancestor is unknown."""
        path = self.path(uuid)
        if path is None:
            return None
        says = (one for one in path if self.said[one]["read"] or not self.said[one]["inherit"])
        return next(says, "root")

    def below(self, uuid: str) -> set[str]:
        """Return a page and all pages below it."""
        found = {uuid}
        while more := {u for u, s in self.said.items() if s["parent"] in found} - found:
            found |= more
        return found


@dataclass
class World:
    """A workspace, the state of its pages, and random changes.

    Attributes:
        marks: of records, each with its page.
        deleted: marks of deleted records, each with the page that defined its readers.
    """

    workspace: Workspace
    rng: random.Random
    oracle: Oracle
    marks: dict[str, str]
    deleted: dict[str, str | None] = field(default_factory=dict)

    def put(self, uuid: str, **changes: Any) -> None:
        """Push a page; a page below itself must be refused, without any effect."""
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
        """Make a random change that an application could make."""
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
            self.deleted |= {
                mark: self.oracle.scope(self.marks[mark]) for mark in self.marked(gone)
            }
            for one in gone:
                self.oracle.said.pop(one, None)
            self.marks = {mark: on for mark, on in self.marks.items() if on not in gone}

    def marked(self, uuids: Set[str]) -> set[str]:
        """Return the marks of pages, and of records on them."""
        return {mark for mark, on in self.marks.items() if on in uuids}

    def formerly_read(self, person: Person) -> set[str]:
        """Return the marks of deleted records that a person could read."""
        scopes = {scope for scope in self.deleted.values() if scope is not None}
        read = {scope for scope in scopes if self.oracle.would_read(person, scope)}
        return {mark for mark, scope in self.deleted.items() if scope in read}

    def sync(self) -> None:
        """Sync the workspace."""
        self.workspace.driver.sync(self.workspace.id)
        self.oracle.unindexed = {on for on in self.marks.values() if self.oracle.is_out(on)}


def back_end_of(seed: int) -> BackEnd:
    """Return the vector back end of a tree."""
    return BACK_ENDS[seed % len(BACK_ENDS)]


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
        # Meaningless vectors put a mark anywhere in a ranking.
        retrieval={"mode": "text"},
        workspace={"vector_backend": back_end_of(seed)},
    ) as workspace:
        session = driver.session
        session.reconcile()
        ref = session.catalog.tenants.get(workspace.id).ref
        KeyRing(session.catalog, session.settings).set(ref, "openai", SecretStr("sk-test-0123456"))
        made = World(workspace, rng, Oracle(), {})
        depth = {"root": 0}
        parents = {}
        for number in range(PAGES):
            parent = rng.choice([uuid for uuid, at in depth.items() if at < MAX_DEPTH])
            uuid = f"markp{number}"
            parents[uuid], depth[uuid] = parent, depth[parent] + 1
            made.marks[uuid] = uuid
        workspace.push({uuid: f"harbour {uuid}" for uuid in made.marks})
        for number in range(COMMENTS):
            mark, on = f"markc{number}", rng.choice(sorted(parents))
            workspace.push({mark: f"harbour {mark}"}, kind="comment", on=on)
            made.marks[mark] = on
        # In random order most pages come before their parents.
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
    """Return why a person reads a page or does not, according to oracle and service."""
    asked = {"page_uuid": uuid, "principal": list(person.principals)}
    told = world.workspace.send("GET", "/rag/access", by=ADMIN, **asked).json()
    documents = world.workspace.catalog.documents.all(world.workspace.id, deleted=True)
    return {
        "path": [(one, world.oracle.said.get(one)) for one in world.oracle.path(uuid) or [uuid]],
        "told": told,
        "documents": [(d.access_scope, d.status) for d in documents if d.page_uuid == uuid],
    }


@pytest.mark.parametrize("seed", SEEDS)
def test_everybody_finds_exactly_what_they_read(
    world: World, seed: int, llmock: LLMock, shared_installation: Installation
) -> None:
    session = shared_installation.session()
    found = 0
    with (
        served(session) as url,
        interfaces_of(world.workspace, shared_installation, url) as interfaces,
    ):
        for step in range(STEPS):
            world.change()
            if world.rng.random() < 0.12:
                world.sync()
            llmock.reply("It is in the harbour [1].")
            found += asked_once(world, interfaces, step)
    assert found > STEPS / 3
    assert interfaces.modes["knn"] > STEPS / 20
    serving = world.workspace.catalog.generations.serving(world.workspace.id)
    assert serving is not None
    beside = "answering" if back_end_of(seed) == "pgvector" else None
    assert serving.vectors_beside == beside


def asked_once(world: World, interfaces: Interfaces, step: int) -> bool:
    """Ask for marks through one interface and judge the response; return whether it had any."""
    rng, interface = world.rng, INTERFACES[step % len(INTERFACES)]
    person = rng.choice(AGENTS if interface is Interfaces.stdio else PEOPLE)
    within = rng.choice([*world.oracle.said]) if rng.random() < NARROWED else None
    below = {*world.marks} if within is None else world.marked(world.oracle.below(within))
    by_vectors = interface in WITH_MODES and len(below) <= MOST and rng.random() < BY_VECTORS
    asked = drawn(world, below)
    told = interface(interfaces, person, Asked(asked, within, "knn" if by_vectors else "text"))
    interfaces.modes["knn" if by_vectors else "text"] += 1
    found = {*MARK.findall(told)}

    pages = {*world.marks.values()}
    readable = world.marked({uuid for uuid in pages if world.oracle.reads(person, uuid)})
    allowed, about = readable & below, below if by_vectors else below & {id_ for _, id_ in asked}
    if interface in WHOLE:
        allowed, about = readable, readable
    elif interface is Interfaces.record:
        # Readers of an excluded page learn that it is excluded.
        told_of = {uuid for uuid in pages if world.oracle.would_read(person, uuid)}
        allowed, about = world.marked(told_of), {id_ for _, id_ in asked} & readable
    elif interface is Interfaces.events:
        # Only admins see documents, including deleted ones.
        allowed, about = readable | world.formerly_read(person), readable
        about = about if person.role == "admin" else set()
    here = (step, person, interface.__name__, within, by_vectors)
    # A hit contains the titles of those ancestors that its caller reads.
    paths = (
        world.oracle.path(world.marks[mark]) or () for mark in found & allowed & {*world.marks}
    )
    titles = readable & {uuid for path in paths for uuid in path}
    extra = [
        (mark, explained(world, person, world.marks.get(mark, mark)))
        for mark in found - allowed - titles
    ]
    assert not extra, (here, extra)
    expected = (about & allowed) - world.marked(world.oracle.unindexed)
    assert expected <= found, (here, expected - found)
    return bool(found)


def drawn(world: World, below: Set[str]) -> tuple[tuple[str, str], ...]:
    """Draw the records of a question: some of all, and some below a page."""
    # A sample of two hundred pages would rarely hit those below a page.
    some = world.rng.sample(sorted(world.marks), min(ASKED // 2, len(world.marks)))
    more = world.rng.sample(sorted(below), min(ASKED // 2, len(below)))
    marks = sorted({*some, *more})
    return tuple(("comment" if mark.startswith("markc") else "page", mark) for mark in marks)
