"""An installation that an operator works with, and a model of what must be true of it.

The model holds the contents of the sources: folders, uploads and pushed records. `verify` compares
the installation with it: every index answers exactly these texts, every original can be read, and
no text that a receipt calls erased is in any place that ever held data of the installation.
"""

from __future__ import annotations

import hashlib
import json
import re
import shutil
from collections import Counter
from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from functools import cached_property
from itertools import count
from pathlib import Path
from typing import Any

import polars as pl
import psycopg
from elasticsearch import Elasticsearch
from psycopg import sql

from rag_assets.common.settings import Settings
from rag_assets.ingest.sources.model import SourceMetadata
from rag_assets.storage.catalog.pushed_records import PushedRecord
from rag_assets.tenants.file import TenantsFile
from tests.databases import execute, url_of
from tests.installation import FAST, CommandResult, Installation
from tests.sites import Site

PREFIX = "RAG_ASSETS_INDEX_PREFIX"
LAKE = "RAG_ASSETS_LAKE_URL"
BLOBS = "RAG_ASSETS_BLOBS_URL"
_WORD = re.compile(r"(?:lantern|label)\d{5}")
_COMMAND = re.compile(r"rag-assets ([\w@./-]+(?: [\w@./-]+)*)")
_SETTING = re.compile(r"\b(RAG_ASSETS_\w+|DATABASE_URL|ELASTICSEARCH_URL|tenants\.yaml)\b")
_MOST_REFUSALS = 6
_MOST_SYNCS = 8


@dataclass
class Tenant:
    """What a tenant's sources hold: a word of each document, by its name or id.

    Attributes:
        folder: of the files.
        kept_out: names of files whose content was purged or pruned, and that are still there.
        deleted: words of documents that are gone from their source, and are in files of the lake
            until the next compaction.
    """

    folder: Path
    files: dict[str, str] = field(default_factory=dict)
    uploads: dict[str, str] = field(default_factory=dict)
    records: dict[str, str] = field(default_factory=dict)
    kept_out: set[str] = field(default_factory=set)
    deleted: set[str] = field(default_factory=set)

    def words(self) -> set[str]:
        """The words that searches have to return."""
        files = {word for name, word in self.files.items() if name not in self.kept_out}
        return {*files, *self.uploads.values(), *self.records.values()}


@dataclass(frozen=True)
class Dump:
    """A copy of a catalog, and what was true when it was made."""

    database: str
    tenants: Mapping[str, Tenant]
    erased: Mapping[str, Sequence[str]]


class World:
    """The shared servers.

    Args:
        folder: for everything that the installations have on disk.
        postgres_url, elasticsearch_url: of the servers.
        stem: of the names of all databases and indexes.
    """

    def __init__(self, folder: Path, postgres_url: str, elasticsearch_url: str, stem: str) -> None:
        self.folder = folder
        self.postgres_url = postgres_url
        self.stem = stem
        self.client = Elasticsearch(elasticsearch_url)
        self._words = count(1)
        self._names = count(1)
        self._words_of_files: dict[tuple[str, int, int], frozenset[str]] = {}

    def new_word(self) -> str:
        """A word that no other document has."""
        return f"lantern{next(self._words):05}"

    def new_name(self, stem: str) -> str:
        """A name that nothing else has."""
        return f"{stem}{next(self._names)}"

    def indexes(self) -> dict[str, Any]:
        """All indexes of the installations, by name."""
        return dict(self.client.indices.get(index=f"{self.stem}*", expand_wildcards="all").body)

    def owned_indexes(self, installation: str) -> dict[str, Any]:
        """The indexes of one installation."""
        return {
            name: body for name, body in self.indexes().items() if owner_of(body) == installation
        }

    def words_behind(self, index: str) -> Counter[str]:
        """The words that an index or alias holds, with the number of entries."""
        self.client.indices.refresh(index=index)
        found = self.client.search(index=index, size=5000, source=["text"])["hits"]["hits"]
        texts = [hit["_source"]["text"] for hit in found]
        found = Counter(word for text in texts for word in set(_WORD.findall(text)))
        return Counter({word: found[word] for word in found if word.startswith("lantern")})

    def delete_entries(self, index: str, tenant_id: str) -> None:
        """Delete a tenant's entries behind the back of their installation."""
        query = {"term": {"tenant": tenant_id}}
        found = self.client.search(index=index, query=query, size=5000, source=False)
        for hit in found["hits"]["hits"]:
            self.client.delete(index=index, id=hit["_id"], routing=hit["_routing"])
        self.client.indices.refresh(index=index)

    def words_in_database(self, url: str, words: Sequence[str]) -> dict[str, set[str]]:
        """What stands before some of the words in rows of each table, as text or as bytes."""
        pattern = "|".join([*words, *(word.encode().hex() for word in words)])
        context = ".{0,200}(?:" + pattern + ")"
        tables = (
            "SELECT schemaname, tablename FROM pg_tables"
            " WHERE schemaname NOT IN ('pg_catalog', 'information_schema')"
        )
        of_table = sql.SQL(
            "SELECT {}, substring(row_::text from {}) FROM {} row_ WHERE row_::text ~ {}"
        )
        with psycopg.connect(url) as connection:
            queries = [
                of_table.format(".".join(name), context, sql.Identifier(*name), pattern)
                for name in connection.execute(tables)
            ]
            rows = connection.execute(sql.SQL(" UNION ALL ").join(queries)).fetchall()
        return {table: {word for name, word in rows if name == table} for table, _ in rows}

    def words_in_folder(self, folder: Path) -> dict[Path, frozenset[str]]:
        """The words in the files below a folder; files of the lake are compressed."""
        return {path: self._words_in(path) for path in folder.rglob("*") if path.is_file()}

    def _words_in(self, path: Path) -> frozenset[str]:
        facts = path.stat()
        key = (str(path), facts.st_size, facts.st_mtime_ns)
        if key not in self._words_of_files:
            content = path.read_bytes().decode("utf-8", "replace")
            if path.suffix == ".parquet":
                content = " ".join(map(str, pl.read_parquet(path).iter_rows()))
            self._words_of_files[key] = frozenset(_WORD.findall(content))
        return self._words_of_files[key]


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
        return self.environment["DATABASE_URL"]

    @cached_property
    def id(self) -> str:
        """The id of the installation, as its home folder records it."""
        marker = json.loads((self.site.home / ".local" / "rag-assets.json").read_text())
        return str(marker["installation"])

    # -- commands

    def run(self, *arguments: str, **env: str) -> CommandResult:
        """Run a command."""
        return self.site.run(*arguments, **env)

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
            if ways[0] == list(arguments):
                continue
            self.persist(*ways[0], through=through)
        raise AssertionError(f"{' '.join(arguments)}: still refused: {result.err}")

    def erase(self, *arguments: str) -> None:
        """Run a purge or a removal; forget the places that it could not search and that are gone.

        It must find nothing elsewhere.
        """
        result = self.run(*arguments)
        lines = [line for line in result.err.splitlines() if "warning: " in line]
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
        (tenant.folder / name).write_text(_text(word))

    def delete_file(self, tenant_id: str, name: str) -> None:
        """Delete a file."""
        tenant = self.tenants[tenant_id]
        (tenant.folder / name).unlink()
        tenant.deleted.add(tenant.files.pop(name))
        tenant.kept_out.discard(name)

    def upload(self, tenant_id: str, word: str, *, replaces: str | None = None) -> None:
        """Upload a file that holds a word."""
        file = self.world.folder / f"{label_of(word)}.md"
        file.write_text(_text(word))
        options = ["--replaces", replaces] if replaces else []
        found = self.done("uploads", "add", tenant_id, str(file), *options)
        file.unlink()
        tenant = self.tenants[tenant_id]
        if replaces:
            tenant.deleted.add(tenant.uploads.pop(replaces))
        tenant.uploads[found["uploads"][0]["id"]] = word

    def push(self, tenant_id: str, record_id: str) -> None:
        """Push a record with a new word."""
        tenant = self.tenants[tenant_id]
        if record_id in tenant.records:
            tenant.deleted.add(tenant.records[record_id])
        tenant.records[record_id] = word = self.world.new_word()
        record = PushedRecord(
            "pushed", "page", record_id, _text(word), "text/markdown", SourceMetadata()
        )
        with self.site.session() as session:
            ref = session.catalog.tenants.get(tenant_id).ref
            session.catalog.records.put(ref, record, scope="public")

    def add_tenant(self, tenant_id: str, folder: Path, **config: Any) -> None:
        """List a tenant with a folder, uploads and records."""
        folder.mkdir(parents=True, exist_ok=True)
        home = self.site.home
        root = str(folder.relative_to(home) if folder.is_relative_to(home) else folder)
        sources = [
            {"name": "files", "type": "files", "root": root},
            {"name": "uploads", "type": "uploads"},
            {"name": "pushed", "type": "records"},
        ]
        entry = {"id": tenant_id, "profile": "documents", "sources": sources, **FAST, **config}
        TenantsFile(home / "tenants.yaml").add(entry)
        self.tenants[tenant_id] = Tenant(folder)

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
            assert set(words) <= set(_WORD.findall(pushed)), (tenant_id, words, texts)

    def words(self, tenant_id: str) -> Counter[str]:
        """The words that searches of a tenant can return, with the number of entries."""
        return self.world.words_behind(f"{self.environment[PREFIX]}-tenant-{tenant_id}")

    def indexes(self) -> dict[str, Any]:
        """The indexes of the installation, by name."""
        return self.world.owned_indexes(self.id)

    def has_blob(self, tenant_id: str, word: str) -> bool:
        """Whether the bytes of an uploaded file are in the store."""
        content = _text(word).encode()
        name = hashlib.sha256(content).hexdigest()
        found = list((self.place("blobs") / tenant_id).rglob(name))
        return any(path.read_bytes() == content for path in found)

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
        made = Dump(name, deepcopy(self.tenants), dict(self.erased))
        self.dumps.append(made)
        return made

    @property
    def database_name(self) -> str:
        return self.database_url.rpartition("/")[2]

    def put_back(self, dump: Dump) -> None:
        """Put a dump in place of the present catalog."""
        execute(self.world.postgres_url, "DROP DATABASE {} WITH (FORCE)", self.database_name)
        self._copy_database(dump.database, self.database_name)

    def move_database(self, name: str) -> None:
        """Give the catalog another name, as a move to another server does."""
        self._copy_database(self.database_name, name)
        execute(self.world.postgres_url, "DROP DATABASE {} WITH (FORCE)", self.database_name)
        self.environment["DATABASE_URL"] = url_of(self.world.postgres_url, name)

    def _copy_database(self, name: str, to: str) -> None:
        with psycopg.connect(self.world.postgres_url, autocommit=True) as connection:
            # Of a command that was killed, or of a pool that was just closed.
            connection.execute(
                "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE datname = %s",
                [name],
            )
        execute(self.world.postgres_url, "CREATE DATABASE {} TEMPLATE {}", to, name)


def owner_of(index: Mapping[str, Any]) -> str | None:
    """The installation in an index's `_meta`."""
    meta = index["mappings"].get("_meta", {}).get("rag_assets", {})
    return meta.get("installation")


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


def label_of(word: str) -> str:
    """The word in the title and the file name of a document, beside that in its text."""
    return word.replace("lantern", "label")


def _text(word: str) -> str:
    return f"# {label_of(word)}\n\nThe {word} hangs beside the door of the cellar.\n"


def _commands_in(text: str, arguments: Sequence[str]) -> list[list[str]]:
    """The commands that an error or a warning names, about the tenant that it is about."""
    found = [match.rstrip(".").split() for match in _COMMAND.findall(text)]
    tenant = next((one for one in reversed(arguments) if not one.startswith("-")), "")
    return [[tenant if part == "TENANT" else part for part in command] for command in found]


def _begins(command: Sequence[str], through: Sequence[str]) -> bool:
    return any(" ".join(command).startswith(start) for start in through)
