"""An installation for tests: a home folder, a database and an index prefix.

The servers are real and shared, and no part of the project is replaced. `cli` runs a command in a
process of its own, as a user would. `sync` and `search` do the same work in this process, which
saves the imports.
"""

from __future__ import annotations

import io
import json
import os
import re
import subprocess
import sys
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import IO, Any

import pytest
from ruamel.yaml import YAML

from rag_assets.cli.session import Session
from rag_assets.cli.sync import TenantSync, sync_tenant
from rag_assets.pipeline.context import TenantContext
from rag_assets.search import Retriever
from rag_assets.search.model import Hit, SearchRequest
from rag_assets.storage.index.store import StoreConfig, open_store
from rag_assets.tenants.file import TenantsFile
from tests.back_ends import BackEnd
from tests.databases import create_database, drop_database
from tests.parsers import share_parsers

FAST = {"embedder": {"provider": "deterministic"}}
"""For tests in which the meaning of vectors does not matter."""


@dataclass
class CommandResult:
    """The exit status and output of a command."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


@dataclass
class Installation:
    """An installation with its commands, syncs and searches."""

    home: Path
    environment: Mapping[str, str]
    back_end: BackEnd = "elasticsearch"
    _sessions: list[Session] = field(default_factory=list)
    _retrievers: list[Retriever] = field(default_factory=list)

    # -- tenants and their files

    def add_tenant(self, tenant_id: str, *, root: Path | None = None, **config: Any) -> Path:
        """Add a tenant with one source, named "files"; return its folder."""
        folder = root or self.home.parent / "sources" / tenant_id
        folder.mkdir(parents=True, exist_ok=True)
        source = {"name": "files", "type": "files", "root": str(folder)}
        entry = {"id": tenant_id, "profile": "documents", "sources": [source], **config}
        TenantsFile(self.home / "tenants.yaml").add(entry)
        return folder

    def configure(self, tenant_id: str, **config: Any) -> None:
        """Set fields of a tenant in tenants.yaml; None removes a field."""
        path = self.home / "tenants.yaml"
        yaml = YAML()
        document = yaml.load(path.read_text())
        entry = next(entry for entry in document["tenants"] if entry["id"] == tenant_id)
        for name, value in config.items():
            entry.pop(name, None)
            if value is not None:
                entry[name] = value
        with path.open("w") as stream:
            yaml.dump(document, stream)

    # -- as a user, in another process

    def cli(self, *arguments: str, timeout: float = 300, **env: str) -> CommandResult:
        """Run a command and wait for it."""
        process = self.start(*arguments, **env)
        out, err = process.communicate(timeout=timeout)
        return CommandResult(process.returncode, out, err)

    def start(
        self,
        *arguments: str,
        stdin: int = subprocess.DEVNULL,
        stderr: int | IO[str] = subprocess.PIPE,
        **env: str,
    ) -> subprocess.Popen[str]:
        """Start a command; the caller waits for it, or kills it."""
        return subprocess.Popen(
            [sys.executable, "-m", "rag_assets.cli", *arguments],
            env={**os.environ, **self.environment, **env},
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=stderr,
            text=True,
        )

    @contextmanager
    def fork_server(self, **env: str) -> Iterator[None]:
        """Start a fork server: within the block, `cli` runs commands as forks, as after `up`."""
        server = self.session().stack.fork_server
        try:
            with pytest.MonkeyPatch.context() as environment:
                for name, value in env.items():
                    environment.setenv(name, value)
                server.start()
            yield
        finally:
            server.process.stop()

    # -- in this process

    def command(self, *arguments: str, **env: str) -> CommandResult:
        """Run a command in this process, which saves the seconds that imports take."""
        from rag_assets.cli import main

        out, err = io.StringIO(), io.StringIO()
        code: object = 0
        with (
            redirect_stdout(out),
            redirect_stderr(err),
            pytest.MonkeyPatch.context() as environment,
        ):
            for name, value in {**self.environment, **env}.items():
                environment.setenv(name, value)
            try:
                main(list(arguments))
            except SystemExit as stopped:
                code = stopped.code
        return CommandResult(int(str(code or 0)), out.getvalue(), err.getvalue())

    def session(self) -> Session:
        """Return a new session, which reads tenants.yaml again."""
        session = Session()
        self._sessions.append(session)
        return session

    def sync(self, tenant_id: str, **options: Any) -> TenantSync:
        """Sync a tenant in this process; the result contains the error, if any."""
        return sync_tenant(self.session(), tenant_id, **options)

    def synced(self, tenant_id: str, **options: Any) -> dict[str, dict[str, int]]:
        """Sync a tenant, fail if the sync fails, and return the counts of each stage."""
        result = self.sync(tenant_id, **options)
        assert result.error is None, (result.error.message, result.error.hint)
        stages: dict[str, dict[str, int]] = result.as_json()["stages"]
        return stages

    def search(self, tenant_id: str, query: str, **options: Any) -> tuple[Hit, ...]:
        """Search a tenant."""
        return self.retriever.search(tenant_id, SearchRequest.of(query=query, **options)).hits

    @cached_property
    def retriever(self) -> Retriever:
        session = self.session()
        retriever = Retriever(session.catalog, session.store, session.embedders)
        self._retrievers.append(retriever)
        return retriever

    def context(self, tenant_id: str, session: Session | None = None) -> TenantContext:
        """Return the context of a tenant's stages without its lock, by default in a new session."""
        session = session or self.session()
        record = session.catalog.tenants.get(tenant_id)
        tenant = session.embedders.tenant(record)
        return TenantContext(
            tenant=tenant,
            ref=record.ref,
            scanned=record.scanned,
            settings=session.settings,
            catalog=session.catalog,
            lake=session.lake.tenant(record.id, record.incarnation),
            store=session.store,
            embedder=session.embedders.get_embedder(record.ref, tenant.embedder),
            embedder_of=partial(session.embedders.get_embedder, record.ref),
            guard=lambda: None,
            log=lambda line: None,
        )

    def entries(
        self, tenant_id: str, session: Session | None = None
    ) -> dict[str, tuple[str, str, int]]:
        """Every entry of the serving generation: uri, text hash and ordinal by id."""
        ctx = self.context(tenant_id, session)
        serving = ctx.catalog.generations.serving(tenant_id)
        assert serving is not None
        found = {}
        for hit in ctx.store.entries.stored(serving.index_name, ctx.owner(serving)):
            found[hit.id] = (
                hit.fields["uri"],
                hit.fields["text_sha256"],
                hit.fields["ordinal"],
            )
        return found

    def release(self) -> None:
        """Give connections back."""
        from rag_assets.resources import stores

        for retriever in self._retrievers:
            retriever.close()
        for session in self._sessions:
            session.close()
        stores.close_all()

    def close(self) -> None:
        """Give connections back and remove what was indexed."""
        self.release()
        # A test may have moved or cloned the installation: find the indexes' present owner.
        remover = open_store(
            StoreConfig(
                self.environment["RAG_ASSETS_ELASTICSEARCH_URL"],
                prefix=self.environment["RAG_ASSETS_INDEX_PREFIX"],
            )
        )
        for index_name in remover.indexes.names():
            remover.indexes.drop(index_name)
        remover.indexes.drop(f"{self.environment['RAG_ASSETS_INDEX_PREFIX']}-marks")
        remover.close()


@contextmanager
def new_installation(
    home: Path, postgres_url: str, elasticsearch_url: str, back_end: BackEnd = "elasticsearch"
) -> Iterator[Installation]:
    """Yield an empty installation, and set its environment variables within the block."""
    home.mkdir(parents=True)
    share_parsers(home)
    name = f"t{uuid.uuid4().hex[:12]}"
    environment = {
        "RAG_ASSETS_HOME": str(home),
        "RAG_ASSETS_INDEX_PREFIX": name,
        "RAG_ASSETS_DATABASE_URL": create_database(postgres_url, name),
        "RAG_ASSETS_ELASTICSEARCH_URL": elasticsearch_url,
        "RAG_ASSETS_MASTER_KEY_FILE": str(home.parent / "master.key"),
        "RAG_ASSETS_DEBUG": "1",
    }
    before = dict(os.environ)
    # A session of the module's shared installation has exported these.
    for address in [key for key in before if re.fullmatch(r"RAG_ASSETS_\w+_URL", key)]:
        del os.environ[address]
    os.environ.update(environment)
    installation = Installation(home, environment, back_end)
    try:
        yield installation
    finally:
        installation.close()
        os.environ.clear()
        os.environ.update(before)
        drop_database(postgres_url, name)
