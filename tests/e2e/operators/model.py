"""An installation under test, and a model of its expected state.

The model holds the contents of the sources: folders, uploads and pushed records. `verify` compares
the installation with it: every index returns exactly these texts, every original can be read, and
no text that a receipt calls erased is in any store that ever held data of the installation.
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
    """The contents of a tenant's sources: one word per document, by the document's name or id.

    Attributes:
        folder: of the files.
        number: distinguishes the tenant from a removed tenant with the same id.
        kept_out: names of files that still exist, but whose content was purged or pruned.
        deleted: words of documents that their source no longer has. They stay in files of the lake
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
        """Return whether a tenant with this id was removed in between."""
        return self.number != other.number

    def keep_out(self, name: str) -> str:
        """Record that a file was purged but still exists; return its word."""
        self.kept_out.add(name)
        return self.files[name]

    def words(self) -> set[str]:
        """Return the words that searches must return."""
        files = {word for name, word in self.files.items() if name not in self.kept_out}
        return {*files, *self.uploads.values(), *self.records.values()}


@dataclass(frozen=True)
class Dump:
    """A dump of a catalog, with the model at that time."""

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
        """Return the folder of the lake or of the blob store."""
        return Path(self.settings.lake_url if kind == "lake" else self.settings.blobs_url)

    def move_home(self, home: Path) -> None:
        """Use another home folder, to which the present one was moved or copied."""
        former = self.site.home
        self.site = Site(home, self.environment)
        for tenant in self.tenants.values():
            if tenant.folder.is_relative_to(former):
                tenant.folder = home / tenant.folder.relative_to(former)

    def note_places(self) -> None:
        """Record the present folders of the lake and the blob store."""
        self.places |= {self.place("lake"), self.place("blobs")}

    @property
    def database_url(self) -> str:
        return self.environment["RAG_ASSETS_DATABASE_URL"]

    @cached_property
    def id(self) -> str:
        """Return the id of the installation, as recorded in its home folder."""
        marker = json.loads((self.site.home / ".local" / "rag-assets.json").read_text())
        return str(marker["installation"])

    # -- commands

    def run(self, *arguments: str, **env: str) -> CommandResult:
        """Run a command and log it."""
        result = self.site.run(*arguments, **env)
        printed = f"{result.out[:1000]}{result.err[:2000]}"
        self.world.commands.append(f"{' '.join(arguments)} ({result.code})\n{printed}")
        return result

    def done(self, *arguments: str) -> Any:
        """Run a command that must succeed; return its JSON."""
        return self.site.done(*arguments)

    def refused(self, *arguments: str, **env: str) -> str:
        """Run a command that must be refused with a hint that names a command or a setting."""
        result = self.run(*arguments, **env)
        assert result.code == 1, (arguments, result.out, result.err)
        error = result.err.rpartition("error: ")[2]
        assert "hint: " in error, (arguments, error)
        assert _COMMAND.search(error) or _SETTING.search(error), (arguments, error)
        return result.err

    def persist(self, *arguments: str, through: Sequence[str] = ()) -> CommandResult:
        """Run a command until it succeeds; after each refusal, run the command that it suggests.

        Args:
            through: prefixes of the suggested commands that the operator prefers.
        """
        for _ in range(_MOST_REFUSALS):
            result = self.run(*arguments)
            if result.code == 0:
                return result
            ways = [way for way in _commands_in(result.err, arguments) if _begins(way, through)]
            assert ways, f"{' '.join(arguments)}: no way out of: {result.out} {result.err}"
            done = self.persist(*ways[0], through=through)
            if ways[0][: len(arguments)] == list(arguments):
                return done  # the command confirms itself
        raise AssertionError(f"{' '.join(arguments)}: still refused: {result.err}")

    def erase(self, *arguments: str) -> None:
        """Run a purge or a removal, and drop the missing folders that its receipt could not search.

        The receipt must not name any other place.
        """
        result = self.run(*arguments)
        # After a restore, data of a later tenant with the same id require a decision.
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
        """Write a new word to a new or existing file."""
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
        """Upload a file that contains a word."""
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
        """Push a record, by default with a new word."""
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
        """Add a tenant with a folder, uploads and records to tenants.yaml."""
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
        """Add a tenant again after its catalog rows were removed, with the same sources.

        Its tombstones are gone too, so purged files that still exist count as new.
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
        """Change the folder that a tenant reads."""
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
        """Remove a tenant from tenants.yaml."""
        TenantsFile(self.site.home / "tenants.yaml").remove(tenant_id)

    def configure(self, tenant_id: str, **config: Any) -> None:
        """Set fields of a tenant in tenants.yaml; None removes a field."""
        Installation(self.site.home, self.site.variables).configure(tenant_id, **config)

    def documents(self, tenant_id: str) -> dict[str, str]:
        """Return the ids of a tenant's documents, by URI."""
        found = self.done("documents", tenant_id)["documents"]
        return {one["uri"]: one["document_id"] for one in found}

    # -- what must be true

    def settle(self, tenant_id: str) -> None:
        """Sync a tenant until no work is left, following the advice of errors and warnings."""
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
        """Return the words that searches of a tenant can return, with their numbers of entries."""
        return self.world.words_behind(f"{self.environment[PREFIX]}-tenant-{tenant_id}")

    def indexes(self) -> dict[str, Any]:
        """Return the indexes of the installation, by name."""
        return self.world.owned_indexes(self.id)

    def has_blob(self, tenant_id: str, word: str) -> bool:
        """Return whether the blob store contains the bytes of an uploaded file."""
        content = text_of(word).encode()
        name = hashlib.sha256(content).hexdigest()
        found = list((self.place("blobs") / tenant_id).rglob(name))
        return any(path.read_bytes() == content for path in found)

    def age_blobs(self) -> None:
        """Make all uploaded files two days old, so that a compaction deletes unreferenced ones."""
        before = time.time() - 2 * 86_400
        for path in self.place("blobs").rglob("blobs/*/*"):
            os.utime(path, (before, before))

    def verify_receipts(self) -> None:
        """Fail if an erased word is in any store that its receipt calls searched."""
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
        """Fail if, after a compaction, deleted texts are in files of the stores or in an index."""
        words = {word for tenant in self.tenants.values() for word in tenant.deleted}
        for kind in ("lake", "blobs"):
            for path, held in self.world.words_in_folder(self.place(kind)).items():
                assert not held & words, (path, held & words)
        for tenant in self.tenants.values():
            tenant.deleted.clear()

    def fingerprint(self) -> object:
        """Return the state that no step of the other installation may change."""
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
        """Return the URLs of the catalog and of its dumps."""
        dumps = [get_url(self.world.postgres_url, dump.database) for dump in self.dumps]
        return [self.database_url, *dumps]

    @property
    def database_name(self) -> str:
        return self.database_url.rpartition("/")[2]

    def put_back(self, dump: Dump) -> None:
        """Replace the present catalog with a dump."""
        execute(self.world.postgres_url, "DROP DATABASE {} WITH (FORCE)", self.database_name)
        self._copy_database(dump.database, self.database_name)

    def copy_database_of(self, other: Operated, name: str) -> None:
        """Use a copy of another installation's catalog."""
        other._copy_database(other.database_name, name)
        self.environment["RAG_ASSETS_DATABASE_URL"] = get_url(self.world.postgres_url, name)

    def move_database(self, name: str) -> None:
        """Rename the catalog's database, which simulates a move to another server."""
        self._copy_database(self.database_name, name)
        execute(self.world.postgres_url, "DROP DATABASE {} WITH (FORCE)", self.database_name)
        self.environment["RAG_ASSETS_DATABASE_URL"] = get_url(self.world.postgres_url, name)

    def _copy_database(self, name: str, to: str) -> None:
        with psycopg.connect(self.world.postgres_url, autocommit=True) as connection:
            # Connections of a killed command, or of a pool that was just closed.
            connection.execute(
                "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE datname = %s",
                [name],
            )
        execute(self.world.postgres_url, "CREATE DATABASE {} TEMPLATE {}", to, name)


def difference(found: Counter[str], expected: set[str]) -> dict[str, list[str]]:
    """Return the missing, surplus and duplicate words."""
    return {
        "missing": sorted(expected - found.keys()),
        "surplus": sorted(found.keys() - expected),
        "twice": sorted(word for word, number in found.items() if number > 1),
    }


def copy_folder(folder: Path, to: Path) -> None:
    """Copy a folder with its times, as `cp -a` does."""
    shutil.copytree(folder, to, symlinks=True)


def _commands_in(text: str, arguments: Sequence[str]) -> list[list[str]]:
    """Return the commands that an error or a warning suggests, with the tenant's id filled in."""
    found = [match.rstrip(".").split() for match in _COMMAND.findall(text)]
    tenant = next(
        (argument for argument in reversed(arguments) if not argument.startswith("-")), ""
    )
    return [[tenant if part == "TENANT" else part for part in command] for command in found]


def _begins(command: Sequence[str], through: Sequence[str]) -> bool:
    return any(" ".join(command).startswith(start) for start in through)
