"""Every interface through which a workspace can be searched.

Each returns the complete text of its response, so that no leak is overlooked.
"""

from __future__ import annotations

import json
import subprocess
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeAlias

from rag_assets.client import Client, Filters, Question
from rag_assets.search.model import Caller, SearchRequest
from rag_assets.storage.catalog.journal.events import SEARCHES
from tests.installation import Installation
from tests.integration.systems.workspace.marked_tree import Person, Workspace

MOST: Final = 20
Mode: TypeAlias = Literal["text", "knn"]


@dataclass(frozen=True)
class Asked:
    """A question for the marks of records.

    Attributes:
        records: the records, each a type and an id; their ids are their marks.
        within: a page to which the search is limited; None: the whole workspace.
        mode: of the search, if the interface has modes.
    """

    records: tuple[tuple[str, str], ...]
    within: str | None = None
    mode: Mode = "text"

    @property
    def words(self) -> str:
        """Return the marks."""
        return " ".join(id_ for _, id_ in self.records)

    @property
    def body(self) -> dict[str, Any]:
        """Return the request body for the service."""
        body: dict[str, Any] = {"query": self.words, "mode": self.mode, "top_k": MOST}
        return body | ({"filters": {"within": [self.within]}} if self.within else {})

    @property
    def arguments(self) -> dict[str, Any]:
        """Return the arguments of the agents' tool, which uses the tenant's mode."""
        within = {"within": [self.within]} if self.within else {}
        return {"query": self.words, "top_k": MOST, **within}

    @property
    def filters(self) -> Filters:
        """Return the filters for Python."""
        return Filters(within=(self.within,) if self.within else None)


@dataclass
class Interfaces:
    """The interfaces of one workspace.

    Attributes:
        url: of the service with real connections.
        agents: running agent processes, by the person they serve.
        modes: the number of questions in each mode.
    """

    workspace: Workspace
    installation: Installation
    url: str
    agents: dict[str, subprocess.Popen[str]] = field(default_factory=dict)
    modes: Counter[Mode] = field(default_factory=Counter)

    def http(self, person: Person, asked: Asked) -> str:
        return self._service(person, "/rag/query", asked.body)

    def answer(self, person: Person, asked: Asked) -> str:
        """Return the answer, its citations, and all hits that the model received."""
        return self._service(person, "/rag/answer", asked.body)

    def agent(self, person: Person, asked: Asked) -> str:
        return self._service(person, "/mcp", _call("rag_search", asked.arguments))

    def resource(self, person: Person, asked: Asked) -> str:
        read = {"method": "resources/read", "params": {"uri": "rag://documents"}}
        return self._service(person, "/mcp", {"jsonrpc": "2.0", "id": 1, **read})

    def documents(self, person: Person, asked: Asked) -> str:
        answer = self.workspace.send("GET", "/rag/documents", by=person, limit=1_000)
        assert answer.status_code == 200, answer.text
        return str(answer.text)

    def record(self, person: Person, asked: Asked) -> str:
        """Return state and chunks of each record; unreadable and unknown ones look the same."""
        told = []
        for kind, id_ in asked.records:
            answer = self.workspace.send("GET", f"/rag/records/{kind}/{id_}", by=person)
            assert answer.status_code in {200, 404}, answer.text
            # A refusal repeats the request.
            told += [answer.text] if answer.status_code == 200 else []
        return "\n".join(told)

    def events(self, person: Person, asked: Asked) -> str:
        """Return the events, without searches, which repeat the caller's own question."""
        told = []
        for kind in ({}, {"kind": "document_indexed"}):
            answer = self.workspace.send("GET", "/rag/events", by=person, limit=1_000, **kind)
            assert answer.status_code == 200, answer.text
            told += [one for one in answer.json()["events"] if one["kind"] not in SEARCHES]
        return json.dumps(told)

    def python(self, person: Person, asked: Asked) -> str:
        caller = Caller(principals=_names(person), role=person.role)
        request = SearchRequest(
            query=asked.words, mode=asked.mode, top_k=MOST, filters=asked.filters, caller=caller
        )
        return str(self.installation.retriever.search(self.workspace.id, request).hits)

    def client(self, person: Person, asked: Asked) -> str:
        question = Question(query=asked.words, mode=asked.mode, top_k=MOST, filters=asked.filters)
        with Client(self.url, self.workspace.token(person)) as client:
            return str(client.query(question).hits)

    def command(self, person: Person, asked: Asked) -> str:
        options = [part for name in _names(person) for part in ("--as", name)]
        options += ["--within", asked.within] if asked.within else []
        options += ["--role", person.role, "--mode", asked.mode, "--top-k", str(MOST), "--json"]
        done = self.installation.command("search", self.workspace.id, asked.words, *options)
        assert done.code == 0, done.err
        return json.dumps(done.json["hits"])

    def stdio(self, person: Person, asked: Asked) -> str:
        """Ask an agent over standard input and output; each person keeps the same process."""
        agent = self.agents.get(person.name)
        if agent is None:
            agent = self.agents[person.name] = self._started(person)
        return _exchanged(agent, _call("rag_search", asked.arguments))

    def _service(self, person: Person, path: str, body: dict[str, Any]) -> str:
        answer = self.workspace.send("POST", path, body, by=person)
        assert answer.status_code == 200, answer.text
        return str(answer.text)

    def _started(self, person: Person) -> subprocess.Popen[str]:
        options = [part for name in _names(person) for part in ("--as", name)]
        command = ("mcp", self.workspace.id, *options, "--role", person.role)
        agent = self.installation.start(*command, stdin=subprocess.PIPE, stderr=subprocess.DEVNULL)
        client = {"name": "trial", "version": "1"}
        hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client}
        _exchanged(agent, {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": hello})
        _sent(agent, {"jsonrpc": "2.0", "method": "notifications/initialized"})
        return agent


@contextmanager
def interfaces_of(
    workspace: Workspace, installation: Installation, url: str
) -> Iterator[Interfaces]:
    """Yield all interfaces of a workspace; agents end with the block."""
    made = Interfaces(workspace, installation, url)
    try:
        yield made
    finally:
        for agent in made.agents.values():
            # The process ends when its input does; the block closes its pipes.
            with agent:
                pass


Interface = Callable[[Interfaces, Person, Asked], str]

INTERFACES: Final[tuple[Interface, ...]] = (
    *(Interfaces.http, Interfaces.answer, Interfaces.agent, Interfaces.python),
    *(Interfaces.client, Interfaces.command, Interfaces.stdio),
    *(Interfaces.documents, Interfaces.resource, Interfaces.record, Interfaces.events),
)
WHOLE: Final = frozenset({Interfaces.documents, Interfaces.resource})
"""Interfaces that list all that is read, whatever is asked."""
WITH_MODES: Final = frozenset(
    {
        *(Interfaces.http, Interfaces.answer, Interfaces.python),
        *(Interfaces.client, Interfaces.command),
    }
)
"""Interfaces that take the mode of a search; agents have the tenant's."""


def _names(person: Person) -> tuple[str, ...]:
    """Return the names of a token; members get `members` from their role."""
    return (person.name, *(f"group:{group}" for group in person.groups))


def _call(tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
    call = {"name": tool, "arguments": arguments}
    return {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}


def _sent(agent: subprocess.Popen[str], message: dict[str, Any]) -> None:
    assert agent.stdin is not None
    agent.stdin.write(json.dumps(message) + "\n")
    agent.stdin.flush()


def _exchanged(agent: subprocess.Popen[str], message: dict[str, Any]) -> str:
    _sent(agent, message)
    assert agent.stdout is not None
    for line in agent.stdout:
        answer = json.loads(line)
        if answer.get("id") == message["id"]:
            assert "error" not in answer, line
            return line
    raise AssertionError("the agent ended without an answer")
