"""A vector server whose role may not use pgvector is refused, and nothing is changed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import urlsplit, urlunsplit
from uuid import uuid4

import psycopg
import pytest
from psycopg import sql

from tests.databases import drop_database, get_url
from tests.driving import Driver
from tests.installation import Installation
from tests.integration.systems.workspace.marked_tree import ADMIN, Workspace, workspace_of

_SCHEMAS = "SELECT nspname FROM pg_namespace WHERE nspname !~ '^pg_|^information_schema$'"


@dataclass(frozen=True)
class Server:
    """A database of a superuser, and a role that may connect to it.

    Attributes:
        url: of the database, as its superuser.
        role: the role's name, and its password.
    """

    url: str
    role: str

    @property
    def role_url(self) -> str:
        """Return the URL with the role."""
        parts = urlsplit(self.url)
        host = parts.netloc.rpartition("@")[2]
        return urlunsplit(parts._replace(netloc=f"{self.role}:{self.role}@{host}"))

    def execute(self, statement: str) -> None:
        with psycopg.connect(self.url, autocommit=True) as connection:
            name = sql.Identifier(urlsplit(self.url).path.strip("/"))
            connection.execute(sql.SQL(statement).format(role=sql.Identifier(self.role), name=name))

    def names(self, query: str) -> set[str]:
        with psycopg.connect(self.url, autocommit=True) as connection:
            return {name for (name,) in connection.execute(query)}  # type: ignore[call-overload]

    @property
    def made(self) -> set[str]:
        """Return the existing schemas and extensions."""
        return self.names(_SCHEMAS) | self.names("SELECT extname FROM pg_extension")


@pytest.fixture
def server(postgres_url: str) -> Iterator[Server]:
    name = f"poor{uuid4().hex[:8]}"
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        words = {"name": sql.Identifier(name), "password": sql.Literal(name)}
        connection.execute(sql.SQL("CREATE ROLE {name} LOGIN PASSWORD {password}").format(**words))
        connection.execute(sql.SQL("CREATE DATABASE {name}").format(**words))
    yield Server(get_url(postgres_url, name), name)
    drop_database(postgres_url, name)
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute(sql.SQL("DROP ROLE {name}").format(**words))


@pytest.fixture
def workspace(
    shared_installation: Installation,
    driver: Driver,
    server: Server,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Workspace]:
    """Create a workspace whose service connects to the vector server with the role."""
    monkeypatch.setenv("RAG_ASSETS_PGVECTOR_URL", server.role_url)
    assert shared_installation.command("installation", "move", "--yes").code == 0
    with workspace_of(shared_installation, driver, server.role) as made:
        made.put("a")
        made.push({"a": "The valve closes to the right."})
        made.sync()
        yield made


@pytest.mark.parametrize(
    ("prepared", "refused"),
    [
        ((), True),
        # The role may use the extension, but not create anything.
        (("CREATE EXTENSION vector",), True),
        (("CREATE EXTENSION vector", "GRANT CREATE ON DATABASE {name} TO {role}"), False),
    ],
)
def test_a_role_that_may_not_is_refused_and_nothing_is_changed(
    workspace: Workspace, server: Server, prepared: tuple[str, ...], refused: bool
) -> None:
    for statement in prepared:
        server.execute(statement)
    made = server.made
    before = workspace.send("GET", "/rag/settings", by=ADMIN).json()
    assert before["vector_backend"] == "elasticsearch"
    answer = workspace.send(
        "PATCH",
        "/rag/settings",
        {"vector_backend": "pgvector", "resolved_comment_days": 7},
        by=ADMIN,
    )
    assert answer.status_code == (409 if refused else 200), answer.text
    after = workspace.send("GET", "/rag/settings", by=ADMIN).json()
    if not refused:
        assert (after["vector_backend"], after["resolved_comment_days"]) == ("pgvector", 7)
        return
    assert answer.json()["type"].endswith(":no-vector-backend")
    assert server.role not in answer.text
    assert after == before
    workspace.sync()
    status = workspace.send("GET", "/rag/status", by=ADMIN).json()
    assert (status["vector_backend"], status["backfilled"]) == ("elasticsearch", None)
    assert server.made == made
    found = workspace.send("POST", "/rag/query", {"query": "valve", "mode": "knn"}, by=ADMIN).json()
    assert len(found["hits"]) == 1
    assert not found.get("degraded")
