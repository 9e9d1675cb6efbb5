"""An installation that an operator works with, and a model of what must be true of it.

The model holds the contents of the sources: folders, uploads and pushed records. `verify` compares
the installation with it: every index answers exactly these texts, every original can be read, and
no text that a receipt calls erased is in any place that ever held data of the installation.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import psycopg

from rag_assets.common.settings import Settings
from rag_assets.ingest.sources.model import SourceMetadata
from rag_assets.storage.catalog.records.model import PushedRecord
from rag_assets.tenants.file import TenantsFile
from tests.databases import execute, get_url
from tests.e2e.operators.world import WORD, World, label_of, text_of
from tests.installation import FAST, CommandResult, Installation
from tests.records import put_record
from tests.sites import Site

PREFIX = "RAG_ASSETS_INDEX_PREFIX"
LAKE = "RAG_ASSETS_LAKE_URL"
BLOBS = "RAG_ASSETS_BLOBS_URL"
_COMMAND = re.compile(r"rag-assets ([\w@./-]+(?: [\w@./-]+)*)")
_SETTING = re.compile(
    r"\b(RAG_ASSETS_\w+|RAG_ASSETS_DATABASE_URL|RAG_ASSETS_ELASTICSEARCH_URL|tenants\.yaml)\b"
)
_MOST_REFUSALS = 6
_MOST_SYNCS = 8


@dataclass
class Tenant:
    """What a tenant's sources hold: a word of each document, by its name or id.

    Attributes:
        folder: of the files.
        number: distinguishes it from a tenant of the same id that was removed.
        kept_out: names of files whose content was purged or pruned, and that are still there.
        deleted: words of documents that are gone from their source, and are in files of the lake
            until the next compaction.
    """

    folder: Path
    number: int
    files: dict[str, str] = field(default_factory=dict)
    uploads: dict[str, str] = field(default_factory=dict)
    records: dict[str, str] = field(default_factory=dict)
    kept_out: set[str] = field(default_factory=set)
    deleted: set[str] = field(default_factory=set)

    def is_new_since(self, other: Tenant) -> bool:
        """Whether a tenant of this id was removed since then."""
        return self.number != other.number

    def keep_out(self, name: str) -> str:
        """Note that a file was purged, which stays where it is; returns its word."""
        self.kept_out.add(name)
        return self.files[name]

    def words(self) -> set[str]:
        """The words that searches have to return."""
        files = {word for name, word in self.files.items() if name not in self.kept_out}
        return {*files, *self.uploads.values(), *self.records.values()}


@dataclass(frozen=True)
class Dump:
    """A copy of a catalog, and what was true when it was made."""

    database: str
    tenants: Mapping[str, Tenant]


class Operated:
    """An installation under test.

    Args:
        world: the servers that it shares.
        name: for the log.
        site: runs its commands.
    """

    def __init__(self, world: World, name: str, site: Site) -> None:
        self.world = world
        self.name = name
        self.site = site
        self.tenants: dict[str, Tenant] = {}
        self.erased: dict[str, Sequence[str]] = {}
        """Each erased word, with the places that its receipt could not see."""
        self.revoked: set[str] = set()
        """Ids of tokens that were revoked."""
        self.dumps: list[Dump] = []
        self.places: set[Path] = set()
        """Every folder that was ever its lake or its place of blobs."""
        self.note_places()

    # -- addresses

    @property
    def environment(self) -> dict[str, str]:
        return self.site.environment

    @property
    def settings(self) -> Settings:
        return Settings.from_environment(self.site.variables)

    def place(self, kind: str) -> Path:
        """The folder of lake or blobs."""
        return Path(self.settings.lake_url if kind == "lake" else self.settings.blobs_url)

    def move_home(self, home: Path) -> None:
        """Use another home folder, to which the present one was moved or copied."""
        former = self.site.home
        self.site = Site(home, self.environment)
        for tenant in self.tenants.values():
            if tenant.folder.is_relative_to(former):
                tenant.folder = home / tenant.folder.relative_to(former)

    def note_places(self) -> None:
        """Remember the present folders of lake and blobs."""
        self.places |= {self.place("lake"), self.place("blobs")}

    @property
    def database_url(self) -> str:
        return self.environment["RAG_ASSETS_DATABASE_URL"]

    @cached_property
    def id(self) -> str:
        """The id of the installation, as its home folder records it."""
        marker = json.loads((self.site.home / ".local" / "rag-assets.json").read_text())
        return str(marker["installation"])

    # -- commands

    def run(self, *arguments: str, **env: str) -> CommandResult:
        """Run a command."""
        result = self.site.run(*arguments, **env)
        printed = f"{result.out[:1000]}{result.err[:2000]}"
        self.world.commands.append(f"{' '.join(arguments)} ({result.code})\n{printed}")
        return result

    def done(self, *arguments: str) -> Any:
        """Run a command that must succeed; return its JSON."""
        return self.site.done(*arguments)

    def refused(self, *arguments: str, **env: str) -> str:
        """Run a command that must be refused, and name a command or a setting as the way out."""
        result = self.run(*arguments, **env)
        assert result.code == 1, (arguments, result.out, result.err)
        error = result.err.rpartition("error: ")[2]
        assert "hint: " in error, (arguments, error)
        assert _COMMAND.search(error) or _SETTING.search(error), (arguments, error)
        return result.err

    def persist(self, *arguments: str, through: Sequence[str] = ()) -> CommandResult:
        """Run a command until it succeeds; after each refusal, run the command that it names.

        Args:
            arguments: of the command.
            through: beginnings of the commands that the operator chooses where a refusal names
                one of them.
        """
        for _ in range(_MOST_REFUSALS):
            result = self.run(*arguments)
            if result.code == 0:
                return result
            ways = [way for way in _commands_in(result.err, arguments) if _begins(way, through)]
            assert ways, f"{' '.join(arguments)}: no way out of: {result.out} {result.err}"
            done = self.persist(*ways[0], through=through)
            if ways[0][: len(arguments)] == list(arguments):
                return done  # It is the same command, confirmed.
        raise AssertionError(f"{' '.join(arguments)}: still refused: {result.err}")

    def erase(self, *arguments: str) -> None:
        """Run a purge or a removal; forget the places that it could not search and that are gone.

        It must find nothing elsewhere.
        """
        result = self.run(*arguments)
        # After a restore, data of a later tenant of the same id wait for a person.
        warnings = [line for line in result.err.splitlines() if "warning: " in line]
        lines = [line for line in warnings if "data of a later tenant" not in line]
        unseen = [line for line in lines if "not searched: " in line]
        assert lines == unseen, result.err
        assert result.code == 0 or unseen, (result.out, result.err)
        for line in unseen:
            [command] = _commands_in(line, arguments)
            assert not Path(command[3]).exists(), line
            self.persist(*command)

    # -- sources

    def write(self, tenant_id: str, name: str) -> None:
        """Write a file with a new word, or another word to a file."""
        tenant = self.tenants[tenant_id]
        tenant.folder.mkdir(parents=True, exist_ok=True)
        if name in tenant.files:
            tenant.deleted.add(tenant.files[name])
        tenant.files[name] = word = self.world.new_word()
        tenant.kept_out.discard(name)
        (tenant.folder / name).write_text(text_of(word))

    def delete_file(self, tenant_id: str, name: str) -> None:
        """Delete a file."""
        tenant = self.tenants[tenant_id]
        (tenant.folder / name).unlink()
        tenant.deleted.add(tenant.files.pop(name))
        tenant.kept_out.discard(name)

    def upload(self, tenant_id: str, word: str, *, replaces: str | None = None) -> None:
        """Upload a file that holds a word."""
        file = self.world.folder / f"{label_of(word)}.md"
        file.write_text(text_of(word))
        options = ["--replaces", replaces] if replaces else []
        found = self.done("uploads", "add", tenant_id, str(file), *options)
        file.unlink()
        tenant = self.tenants[tenant_id]
        if replaces:
            tenant.deleted.add(tenant.uploads.pop(replaces))
        tenant.uploads[found["uploads"][0]["id"]] = word

    def push(self, tenant_id: str, record_id: str, word: str | None = None) -> None:
        """Push a record, with a new word by default."""
        tenant = self.tenants[tenant_id]
        if word is None:
            word = self.world.new_word()
            if record_id in tenant.records:
                tenant.deleted.add(tenant.records[record_id])
        tenant.records[record_id] = word
        content = (text_of(word), "text/markdown", SourceMetadata())
        record = PushedRecord("pushed", "page", record_id, *content)
        with self.site.session() as session:
            ref = session.catalog.tenants.get(tenant_id).ref
            put_record(session.catalog.records, ref, record, scope="public")

    def add_tenant(self, tenant_id: str, folder: Path) -> None:
        """List a tenant with a folder, uploads and records."""
        folder.mkdir(parents=True, exist_ok=True)
        sources = [
            self._files(folder),
            {"name": "uploads", "type": "uploads"},
            {"name": "pushed", "type": "records"},
        ]
        entry = {"id": tenant_id, "profile": "documents", "sources": sources, **FAST}
        TenantsFile(self.site.home / "tenants.yaml").add(entry)
        self.tenants[tenant_id] = Tenant(folder, self.world.new_number())

    def list_again(self, tenant_id: str, tenant: Tenant) -> None:
        """List a tenant again whose catalog rows were removed, with the same sources.

        Its tombstones went with it: files that were purged, and are still there, are new to it.
        """
        self.add_tenant(tenant_id, tenant.folder)
        tenant.number = self.tenants[tenant_id].number
        for word in (tenant.files[name] for name in tenant.kept_out):
            self.erased.pop(word, None)
            self.erased.pop(label_of(word), None)
        tenant.kept_out.clear()
        self.tenants[tenant_id] = tenant
        self.run("tenants", "claim", tenant_id)

    def set_root(self, tenant_id: str, folder: Path) -> None:
        """Let a tenant read another folder."""
        sources = [
            self._files(folder),
            {"name": "uploads", "type": "uploads"},
            {"name": "pushed", "type": "records"},
        ]
        self.configure(tenant_id, sources=sources)

    def _files(self, folder: Path) -> dict[str, str]:
        home = self.site.home
        root = str(folder.relative_to(home) if folder.is_relative_to(home) else folder)
        return {"name": "files", "type": "files", "root": root}

    def unlist(self, tenant_id: str) -> None:
        """Take a tenant out of tenants.yaml."""
        TenantsFile(self.site.home / "tenants.yaml").remove(tenant_id)

    def configure(self, tenant_id: str, **config: Any) -> None:
        """Set or, with None, take away fields of a tenant in tenants.yaml."""
        Installation(self.site.home, self.site.variables).configure(tenant_id, **config)

    def documents(self, tenant_id: str) -> dict[str, str]:
        """The ids of a tenant's documents, by uri."""
        found = self.done("documents", tenant_id)["documents"]
        return {one["uri"]: one["document_id"] for one in found}

    # -- what must be true

    def settle(self, tenant_id: str) -> None:
        """Sync a tenant until nothing is left to do, as an operator who follows the advice."""
        for _ in range(_MOST_SYNCS):
            result = self.persist("sync", tenant_id, through=["sync", "up"])
            if "held back" in result.err or "are kept" in result.err:
                ways = _commands_in(result.err, ("sync", tenant_id))
                assert ways, result.err
                self.persist(*ways[0])
            elif "nothing to do" in result.out:
                return
        raise AssertionError(f"{tenant_id} is never drained: {result.out} {result.err}")

    def verify(self) -> None:
        """Sync every tenant, and compare the installation with the model."""
        for tenant_id in self.tenants:
            self.settle(tenant_id)
        listed = self.done("tenants", "list")["tenants"]
        assert {one["id"] for one in listed} == set(self.tenants)
        for tenant_id, tenant in self.tenants.items():
            found = self.words(tenant_id)
            assert found == Counter(tenant.words()), (tenant_id, difference(found, tenant.words()))
            self._verify_originals(tenant_id, tenant)
            tokens = self.done("tokens", "list", tenant_id)["tokens"]
            assert not self.revoked & {token["token_id"] for token in tokens}
        assert self.run("receipts", "--verify").code == 0
        self.verify_receipts()

    def _verify_originals(self, tenant_id: str, tenant: Tenant) -> None:
        listed = {one["id"]: one for one in self.done("uploads", "list", tenant_id)["uploads"]}
        assert listed.keys() == tenant.uploads.keys()
        for id_, word in tenant.uploads.items():
            assert self.has_blob(tenant_id, word), (tenant_id, id_, "the uploaded file is lost")
        if words := list(tenant.records.values()):
            texts = self.world.words_in_database(self.database_url, words)
            pushed = " ".join(texts["rag_catalog.source_records"])
            assert set(words) <= set(WORD.findall(pushed)), (tenant_id, words, texts)

    def words(self, tenant_id: str) -> Counter[str]:
        """The words that searches of a tenant can return, with the number of entries."""
        return self.world.words_behind(f"{self.environment[PREFIX]}-tenant-{tenant_id}")

    def indexes(self) -> dict[str, Any]:
        """The indexes of the installation, by name."""
        return self.world.owned_indexes(self.id)

    def has_blob(self, tenant_id: str, word: str) -> bool:
        """Whether the bytes of an uploaded file are in the store."""
        content = text_of(word).encode()
        name = hashlib.sha256(content).hexdigest()
        found = list((self.place("blobs") / tenant_id).rglob(name))
        return any(path.read_bytes() == content for path in found)

    def age_blobs(self) -> None:
        """Let all uploaded files be two days old, so that a compaction deletes what is nobody's."""
        before = time.time() - 2 * 86_400
        for path in self.place("blobs").rglob("blobs/*/*"):
            os.utime(path, (before, before))

    def verify_receipts(self) -> None:
        """No erased word is in any place, but for those that its receipt could not see."""
        words = [word for word, unseen in self.erased.items()]
        if not words:
            return
        found = self.world.words_in_database(self.database_url, words)
        assert not found, found
        for name in self.indexes():
            assert not self.world.words_behind(name).keys() & set(words), name
        for place in self.places:
            for path, held in self.world.words_in_folder(place).items():
                left = {
                    word
                    for word in held & set(words)
                    if not any(str(place) in unseen for unseen in self.erased[word])
                }
                assert not left, (path, left)

    def verify_compacted(self) -> None:
        """After a compaction, deleted texts are in no file of lake and blobs and in no index."""
        words = {word for tenant in self.tenants.values() for word in tenant.deleted}
        for kind in ("lake", "blobs"):
            for path, held in self.world.words_in_folder(self.place(kind)).items():
                assert not held & words, (path, held & words)
        for tenant in self.tenants.values():
            tenant.deleted.clear()

    def fingerprint(self) -> object:
        """What no step of another installation may change."""
        indexes = self.indexes()
        aliases = {name: body["aliases"] for name, body in indexes.items()}
        words = {name: self.world.words_behind(name) for name in indexes}
        files = {
            str(path): path.stat().st_size
            for kind in ("lake", "blobs")
            for path in self.place(kind).rglob("*")
            if path.is_file()
        }
        with psycopg.connect(self.database_url) as connection:
            tenants = connection.execute(
                "SELECT id, state, incarnation FROM rag_catalog.tenants ORDER BY id"
            ).fetchall()
        return aliases, words, files, tenants

    # -- dumps

    def dump(self) -> Dump:
        """Copy the catalog, as a dump does."""
        name = self.world.new_name(f"{self.world.stem}dump")
        self._copy_database(self.database_name, name)
        made = Dump(name, deepcopy(self.tenants))
        self.dumps.append(made)
        return made

    @property
    def database_urls(self) -> list[str]:
        """The catalog and its dumps."""
        dumps = [get_url(self.world.postgres_url, dump.database) for dump in self.dumps]
        return [self.database_url, *dumps]

    @property
    def database_name(self) -> str:
        return self.database_url.rpartition("/")[2]

    def put_back(self, dump: Dump) -> None:
        """Put a dump in place of the present catalog."""
        execute(self.world.postgres_url, "DROP DATABASE {} WITH (FORCE)", self.database_name)
        self._copy_database(dump.database, self.database_name)

    def copy_database_of(self, other: Operated, name: str) -> None:
        """Use a copy of another installation's catalog."""
        other._copy_database(other.database_name, name)
        self.environment["RAG_ASSETS_DATABASE_URL"] = get_url(self.world.postgres_url, name)

    def move_database(self, name: str) -> None:
        """Give the catalog another name, as a move to another server does."""
        self._copy_database(self.database_name, name)
        execute(self.world.postgres_url, "DROP DATABASE {} WITH (FORCE)", self.database_name)
        self.environment["RAG_ASSETS_DATABASE_URL"] = get_url(self.world.postgres_url, name)

    def _copy_database(self, name: str, to: str) -> None:
        with psycopg.connect(self.world.postgres_url, autocommit=True) as connection:
            # Of a command that was killed, or of a pool that was just closed.
            connection.execute(
                "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE datname = %s",
                [name],
            )
        execute(self.world.postgres_url, "CREATE DATABASE {} TEMPLATE {}", to, name)


def difference(found: Counter[str], expected: set[str]) -> dict[str, list[str]]:
    """What is missing, what is too much, and what is there twice."""
    return {
        "missing": sorted(expected - found.keys()),
        "surplus": sorted(found.keys() - expected),
        "twice": sorted(word for word, number in found.items() if number > 1),
    }


def copy_folder(folder: Path, to: Path) -> None:
    """Copy a folder with its times, as `cp -a` does."""
    shutil.copytree(folder, to, symlinks=True)


def _commands_in(text: str, arguments: Sequence[str]) -> list[list[str]]:
    """The commands that an error or a warning names, about the tenant that it is about."""
    found = [match.rstrip(".").split() for match in _COMMAND.findall(text)]
    tenant = next(
        (argument for argument in reversed(arguments) if not argument.startswith("-")), ""
    )
    return [[tenant if part == "TENANT" else part for part in command] for command in found]


def _begins(command: Sequence[str], through: Sequence[str]) -> bool:
    return any(" ".join(command).startswith(start) for start in through)
