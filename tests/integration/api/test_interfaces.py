"""All interfaces give the same answer: exactly what the caller may read of the tenant."""

from __future__ import annotations

import asyncio
import random
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
from mcp import Client

from rag_assets.common.principals import MEMBERS
from rag_assets.mcp.server import build_server
from rag_assets.mcp.tools import Knowledge, MessageContext
from rag_assets.search import AsyncRetriever
from rag_assets.search.access import DocumentReader
from rag_assets.search.model import Caller, SearchRequest
from rag_assets.storage.catalog.accounts.access import PUBLIC
from tests.installation import FAST
from tests.integration.api.conftest import Api
from tests.integration.api.test_mcp_routes import ACCEPT

WORDS = ("tide", "harbour", "lantern", "compass", "rudder", "anchor")
SCOPES = (PUBLIC, "staff", "board", "tide' OR '1'='1")
PEOPLE = ("ada", "bob", "group:crew", "group:*", "public", "staff", "' OR 1=1 --")
TENANTS = ("left", "right")
HOSTILE = ("right*", "left,right", "*", "../right", "right/..", "RIGHT", "left\0right", "%72ight")
MARK = re.compile(r"\bmark[a-z]+\d+\b")


@dataclass
class World:
    """Two tenants of random documents, with their readers.

    Attributes:
        marks: a word that occurs in only one document, with its tenant and scope.
        granted: readers by tenant and scope.
    """

    api: Api
    marks: dict[str, tuple[str, str]] = field(default_factory=dict)
    granted: dict[tuple[str, str], set[str]] = field(default_factory=dict)

    def readable(self, tenant: str, people: list[str]) -> set[str]:
        """Return the marks of documents that these readers may read."""
        scopes = {PUBLIC} | {
            scope
            for (owner, scope), granted in self.granted.items()
            if owner == tenant and granted & set(people)
        }
        return {
            mark
            for mark, (owner, scope) in self.marks.items()
            if owner == tenant and scope in scopes
        }

    def change(self, rng: random.Random) -> None:
        """Grant or revoke a random scope."""
        tenant, scope, person = rng.choice(TENANTS), rng.choice(SCOPES[1:]), rng.choice(PEOPLE)
        catalog = self.api.driver.session.catalog
        ref = catalog.tenants.get(tenant).ref
        held = self.granted.setdefault((tenant, scope), set())
        if rng.random() < 0.6:
            catalog.access.grant(ref, scope, [person])
            held.add(person)
        else:
            catalog.access.revoke(ref, scope, [person])
            held.discard(person)


@pytest.fixture(scope="module")
def world(api: Api) -> World:
    rng = random.Random(7)
    made = World(api)
    for tenant in TENANTS:
        root = api.installation.home.parent / "sources" / tenant
        sources = []
        for at, scope in enumerate(SCOPES):
            folder = root / str(at)
            folder.mkdir(parents=True)
            for number in range(rng.randint(1, 5)):
                mark = f"mark{tenant}{at}{number}"
                made.marks[mark] = (tenant, scope)
                words = " ".join(rng.choices(WORDS, k=8))
                (folder / f"{number}.md").write_text(f"# {rng.choice(WORDS)}\n\n{words} {mark}.\n")
            # The same words in every scope of both tenants: a single hit, with only its own
            # tenant's URIs.
            (folder / "same.md").write_text("# Notice\n\nThe harbour is closed at night.\n")
            sources.append({"name": f"s{at}", "root": str(folder), "scope": scope})
        api.installation.add_tenant(tenant, root=root, **{**FAST, "sources": sources})
        api.driver.sync(tenant)
    return made


def by_python(world: World, tenant: str, people: list[str], query: str, mode: Any) -> str:
    caller = Caller(principals=tuple(people))
    request = SearchRequest(query=query, top_k=100, mode=mode, caller=caller)
    return str(world.api.core(tenant, request))


def by_http(world: World, tenant: str, people: list[str], query: str, mode: Any) -> str:
    response = world.api.ask(token(world, tenant, people), query=query, top_k=100, mode=mode)
    assert response.status_code == 200
    return str(response.text)


def by_http_agent(world: World, tenant: str, people: list[str], query: str, mode: Any) -> str:
    arguments = {"query": query, "top_k": 100}
    call = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {"name": "rag_search", "arguments": arguments},
    }
    headers = {"Authorization": f"Bearer {token(world, tenant, people)}", **ACCEPT}
    response = world.api.client.post("/mcp", json=call, headers=headers)
    assert not response.json()["result"]["isError"]
    return str(response.text)


def by_local_agent(world: World, tenant: str, people: list[str], query: str, mode: Any) -> str:
    session = world.api.driver.session
    message = MessageContext(tenant, Caller(principals=tuple(people)))

    async def run() -> str:
        retriever = AsyncRetriever(session.catalog, session.store, session.embedders)
        reader = DocumentReader(session.catalog, session.store)
        try:
            async with Client(
                build_server(Knowledge(retriever.search, reader), lambda _: message)
            ) as client:
                result = await client.call_tool("rag_search", {"query": query, "top_k": 100})
        finally:
            await retriever.close()
        assert not result.is_error
        return str(result.content)

    return asyncio.run(run())


def by_command(world: World, tenant: str, people: list[str], query: str, mode: Any) -> str:
    options = [option for person in people for option in ("--as", person)]
    result = world.api.installation.command(
        "search", tenant, query, "--top-k", "100", "--mode", mode, "--json", *options
    )
    assert result.code == 0
    return result.out


INTERFACES: dict[str, Callable[[World, str, list[str], str, Any], str]] = {
    "python": by_python,
    "http": by_http,
    "agent over http": by_http_agent,
    "agent": by_local_agent,
    "command": by_command,
}


def token(world: World, tenant: str, people: list[str]) -> str:
    """Return a JWT of a person with groups."""
    subjects = [person for person in people if not person.startswith("group:")]
    groups = [person.removeprefix("group:") for person in people if person.startswith("group:")]
    assert len(subjects) == 1
    return world.api.token(subjects[0], tenant, groups=groups)


def build_principals(rng: random.Random) -> list[str]:
    """Return the principals of a random caller: a person with some groups."""
    subjects = [person for person in PEOPLE if not person.startswith("group:")]
    groups = [person for person in PEOPLE if person.startswith("group:")]
    return [rng.choice(subjects), *rng.sample(groups, rng.randint(0, 2))]


@pytest.mark.parametrize("seed", range(3))
def test_every_interface_finds_exactly_what_may_be_read(world: World, seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(3):
        world.change(rng)
        tenant, people = rng.choice(TENANTS), build_principals(rng)
        mode = rng.choice(["knn", "hybrid"])
        allowed = world.readable(tenant, people)
        for name, answer in INTERFACES.items():
            text = answer(world, tenant, people, " ".join(WORDS), mode)
            assert set(MARK.findall(text)) == allowed, (name, people)
            sources = {int(at) for at in re.findall(r"\bs(\d)/", text)}
            assert {SCOPES[at] for at in sources} <= {PUBLIC} | {
                scope for (_, scope), held in world.granted.items() if held & set(people)
            }


@pytest.mark.parametrize("seed", range(2))
def test_no_filter_and_no_preference_opens_anything(world: World, seed: int) -> None:
    rng = random.Random(seed)
    world.change(rng)
    people = build_principals(rng)
    allowed = world.readable("left", people)
    foreign = [mark for mark in world.marks if mark not in allowed]
    for body in (
        {"filters": {"paths": [f"s{at}/" for at in range(4)]}},
        {"must_include_paths": ["s1/", "s2/", "s3/"]},
        {"filters": {"metadata": {"access_scope": "board"}}},
        {"filters": {"metadata": {"tenant": "right"}}},
        {"filters": {"tags": ["*"]}},
        {"source_types": ["file"]},
        {"min_score": -1.0},
    ):
        query = " ".join(rng.sample(foreign, min(4, len(foreign))))
        text = world.api.ask(token(world, "left", people), query=query, top_k=100, **body).text
        assert set(MARK.findall(text)) <= allowed, body


@pytest.mark.parametrize("tenant", HOSTILE)
def test_a_hostile_name_of_a_tenant_opens_nothing(world: World, tenant: str) -> None:
    mine = world.api.token("ada", "left")
    response = world.api.ask(mine, tenant=tenant)
    assert response.status_code in {403, 422}
    assert not MARK.findall(response.text)
    # A signer may put any name into a token; no tenant has this one.
    response = world.api.ask(world.api.token("ada", tenant))
    assert response.status_code in {401, 403, 404, 422}
    assert not MARK.findall(response.text)
    assert "rag-assets tenants" not in response.text


@pytest.mark.parametrize("role", ["member", "guest", "admin"])
def test_a_role_opens_the_same_documents_at_every_interface(world: World, role: Any) -> None:
    catalog = world.api.driver.session.catalog
    ref = catalog.tenants.get("left").ref
    for scope, person in (("staff", MEMBERS), ("board", "gil")):
        catalog.access.grant(ref, scope, [person])
    expected = {
        mark
        for mark, (tenant, scope) in world.marks.items()
        if tenant == "left" and scope in ({"board"} if role == "guest" else {PUBLIC, *SCOPES[1:3]})
    }
    query = " ".join(expected)
    caller = Caller(principals=("gil",), role=role)
    request = SearchRequest(query=query, top_k=100, mode="text", caller=caller)
    bearer = world.api.token("gil", "left", role=role)
    call = {"name": "rag_search", "arguments": {"query": query, "top_k": 100}}
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}
    headers = {"Authorization": f"Bearer {bearer}", **ACCEPT}
    command = ("search", "left", query, "--top-k", "100", "--mode", "text", "--json", "--as", "gil")
    options = ("--role", role) if role != "member" else ()
    for answer in (
        str(world.api.core("left", request)),
        world.api.ask(bearer, query=query, top_k=100, mode="text").text,
        world.api.client.post("/mcp", json=message, headers=headers).text,
        world.api.installation.command(*command, *options).out,
    ):
        assert set(MARK.findall(answer)) == expected
    for scope, person in (("staff", MEMBERS), ("board", "gil")):
        catalog.access.revoke(ref, scope, [person])
