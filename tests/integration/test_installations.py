"""Installations on shared servers never change data of another installation, or of a copy."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from elasticsearch import Elasticsearch
from sqlalchemy import create_engine, text

from rag_assets.cli.session import Session
from rag_assets.pipeline.removal import delete_strays
from rag_assets.storage.blobs.store import open_blobs
from rag_assets.storage.index.elasticsearch.mapping import build_write_alias
from rag_assets.storage.installation.markers import MARKER
from tests.databases import create_database, drop_database, execute, get_url, name_of
from tests.installation import FAST, Installation, new_installation
from tests.sites import Site

TEXT = "Backups are kept in the basement for seven years."


@pytest.fixture
def production(
    postgres_url: str, elasticsearch_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Site]:
    """Create an installation with one tenant, which has one document and one upload."""
    monkeypatch.delenv("RAG_ASSETS_LAKE_URL", raising=False)
    with new_installation(tmp_path / "a" / "home", postgres_url, elasticsearch_url) as made:
        folder = made.add_tenant("acme", **FAST)
        made.configure(
            "acme",
            sources=[
                {"name": "files", "type": "files", "root": str(folder)},
                {"name": "uploads", "type": "uploads"},
            ],
        )
        (folder / "backup.md").write_text(f"# Backup\n\n{TEXT}\n")
        site = Site(made.home, dict(made.environment))
        upload = tmp_path / "upload.md"
        upload.write_text("# Uploaded\n\nThe contract ends in May.\n")
        site.done("uploads", "add", "acme", str(upload))
        site.done("sync", "acme")
        assert TEXT in " ".join(site.hits())
        yield site


def other_site(
    production: Site, postgres_url: str, folder: Path, name: str, **environment: str
) -> Site:
    """Create a second installation on the same servers, with its own catalog."""
    home = folder / name / "home"
    home.mkdir(parents=True)
    own = {**production.environment, "RAG_ASSETS_DATABASE_URL": create_database(postgres_url, name)}
    own |= {"RAG_ASSETS_HOME": str(home), **environment}
    site = Site(home, own)
    docs = folder / name / "docs"
    docs.mkdir()
    (docs / "other.md").write_text("# Other\n\nThe staging cluster is rebuilt on Mondays.\n")
    return site


@pytest.fixture
def second(production: Site, postgres_url: str, tmp_path: Path) -> Iterator[Site]:
    name = f"{production.environment['RAG_ASSETS_INDEX_PREFIX']}b"
    yield other_site(production, postgres_url, tmp_path, name)
    drop_database(postgres_url, name)


@pytest.fixture
def copied_database(production: Site, postgres_url: str) -> Iterator[str]:
    """Yield the URL of a copy of production's catalog, as after a dump and a restore."""
    original = production.environment["RAG_ASSETS_INDEX_PREFIX"]
    name = f"{original}copy"
    execute(postgres_url, "CREATE DATABASE {} TEMPLATE {}", name, original)
    yield get_url(postgres_url, name)
    drop_database(postgres_url, name)


def copy(folder: Path, to: Path) -> None:
    """Copy a folder as an operator does."""
    subprocess.run(["cp", "-a", str(folder), str(to)], check=True)


def indexes_of(site: Site) -> dict[str, Any]:
    prefix = site.environment["RAG_ASSETS_INDEX_PREFIX"]
    with Elasticsearch(site.environment["RAG_ASSETS_ELASTICSEARCH_URL"]) as client:
        return dict(client.indices.get(index=f"{prefix}-*").body)


def sweep(site: Site) -> int:
    """Delete data without an owner, as the weekly compaction does."""
    with pytest.MonkeyPatch.context() as environment:
        for name, value in site.environment.items():
            environment.setenv(name, value)
        environment.setenv("RAG_ASSETS_LAKE_URL", str(site.home / ".local" / "lake"))
        with Session() as session:
            blobs = open_blobs(session.settings)
            return delete_strays(session.catalog, session.lake, session.store, blobs)


def test_a_second_installation_with_the_same_prefix_is_refused_and_changes_nothing(
    production: Site, second: Site, tmp_path: Path
) -> None:
    docs = next(tmp_path.glob("*b/docs"))
    second.done("tenants", "add", "globex", "--source", str(docs))
    refusal = second.refused("sync", "globex")
    assert production.id in refusal
    assert second.id in refusal
    assert "RAG_ASSETS_INDEX_PREFIX" in refusal
    assert sweep(second) == 0
    assert TEXT in " ".join(production.hits())
    prefix = production.environment["RAG_ASSETS_INDEX_PREFIX"]
    second.environment["RAG_ASSETS_INDEX_PREFIX"] = f"{prefix}b"
    assert "installation move" in second.refused("sync", "globex")
    second.done("installation", "move", "--yes")
    second.done("sync", "globex")
    assert sweep(second) == sweep(production) == 0
    assert TEXT in " ".join(production.hits())


def test_every_index_and_alias_names_its_installation(production: Site) -> None:
    for body in indexes_of(production).values():
        assert body["mappings"]["_meta"]["rag_assets"] == {"installation": production.id}
        for alias in body["aliases"].values():
            assert alias["filter"]["bool"]["_name"].endswith(production.id)


@pytest.mark.parametrize("variable", ["RAG_ASSETS_BLOBS_URL", "RAG_ASSETS_LAKE_URL"])
def test_a_shared_folder_is_refused_at_once(production: Site, second: Site, variable: str) -> None:
    kind = variable.split("_")[2].lower()
    place = production.home / ".local" / kind
    before = sorted(place.rglob("*"))
    refusal = second.refused("tenants", "list", **{variable: str(place)})
    assert production.id in refusal
    assert variable in refusal
    assert sorted(place.rglob("*")) == before


def test_a_copied_catalog_starts_only_as_a_clone(
    production: Site, copied_database: str, tmp_path: Path
) -> None:
    home = tmp_path / "staging"
    copy(production.home, home)
    prefix = production.environment["RAG_ASSETS_INDEX_PREFIX"]
    staging = Site(
        home,
        {
            **production.environment,
            "RAG_ASSETS_HOME": str(home),
            "RAG_ASSETS_DATABASE_URL": copied_database,
            "RAG_ASSETS_INDEX_PREFIX": f"{prefix}s",
        },
    )
    before = indexes_of(production)
    for command in (("tenants", "list"), ("sync", "acme"), ("tenants", "remove", "acme", "--yes")):
        refusal = staging.refused(*command)
        assert "installation clone" in refusal
        assert "installation move" in refusal
    assert "--yes" in staging.refused("installation", "clone")
    clone = staging.done("installation", "clone", "--yes")
    assert clone["original"] == production.id
    assert clone["installation"] == staging.id != production.id
    synced = staging.done("sync", "acme")
    assert synced["stages"]["embeddings"]["embedded"] == 0
    assert TEXT in " ".join(staging.hits())
    staging.run("tenants", "list")
    config = home / "tenants.yaml"
    config.write_text("tenants: []\n")
    staging.done("tenants", "remove", "acme", "--yes")
    assert indexes_of(production) == before
    assert TEXT in " ".join(production.hits())


def test_a_clone_on_the_lake_of_the_original_is_refused(
    production: Site, copied_database: str, tmp_path: Path
) -> None:
    home = tmp_path / "staging"
    home.mkdir()
    lake = str(production.home / ".local" / "lake")
    environment = {**production.environment, "RAG_ASSETS_DATABASE_URL": copied_database}
    staging = Site(home, environment | {"RAG_ASSETS_HOME": str(home), "RAG_ASSETS_LAKE_URL": lake})
    refusal = staging.refused("installation", "clone", "--yes")
    assert production.id in refusal
    assert "RAG_ASSETS_LAKE_URL" in refusal
    assert TEXT in " ".join(production.hits())


def test_a_copied_home_is_refused_and_a_moved_one_is_not(production: Site, tmp_path: Path) -> None:
    duplicate = tmp_path / "copy"
    copy(production.home, duplicate)
    refusal = Site(duplicate, production.environment).refused("tenants", "list")
    assert f"{duplicate} is a copy of {production.home}" in refusal
    # Its catalog is the original's own: to clone that would take it from the original.
    refusal = Site(duplicate, production.environment).refused("installation", "clone", "--yes")
    assert "itself, and is not a copy" in refusal
    assert "RAG_ASSETS_DATABASE_URL" in refusal
    shutil.rmtree(duplicate)
    moved = tmp_path / "moved"
    production.home.rename(moved)
    site = Site(moved, {**production.environment, "RAG_ASSETS_HOME": str(moved)})
    assert site.done("tenants", "list")["tenants"][0]["state"] == "ACTIVE"
    assert site.done("sync", "acme")["stages"]["embeddings"]["embedded"] == 0
    assert TEXT in " ".join(site.hits())
    assert json.loads((moved / ".local" / MARKER).read_text())["path"] == str(moved)
    places = site.done("installation", "show")["places"]
    assert str(moved / ".local" / "blobs") in [place["address"] for place in places]
    assert [place for place in places if place["left_at"]] == []


def test_a_changed_prefix_is_refused_until_it_is_moved_and_removal_reaches_the_former_one(
    production: Site,
) -> None:
    before = production.environment["RAG_ASSETS_INDEX_PREFIX"]
    site = Site(
        production.home, {**production.environment, "RAG_ASSETS_INDEX_PREFIX": f"{before}n"}
    )
    refusal = site.refused("tenants", "remove", "acme", "--yes")
    assert f"has its index at {before}, not at {before}n" in refusal
    assert TEXT in " ".join(production.hits())
    site.done("installation", "move", "--yes")
    every = {alias for body in indexes_of(production).values() for alias in body["aliases"]}
    aliases = {alias for alias in every if "-tenant-" in alias}
    assert aliases == {f"{before}n-tenant-acme"}
    assert TEXT in " ".join(site.hits())
    (production.home / "tenants.yaml").write_text("tenants: []\n")
    removed = site.done("tenants", "remove", "acme", "--yes")
    assert removed["complete"]
    with Elasticsearch(site.environment["RAG_ASSETS_ELASTICSEARCH_URL"]) as client:
        assert not client.indices.get(index=f"{before}*-index-*").body


def test_a_receipt_covers_former_places_or_names_those_that_it_could_not_see(
    production: Site, tmp_path: Path
) -> None:
    former = production.home / ".local" / "lake"
    present = tmp_path / "lake"
    site = Site(production.home, {**production.environment, "RAG_ASSETS_LAKE_URL": str(present)})
    assert "RAG_ASSETS_LAKE_URL" in site.refused("sync", "acme")
    assert "is empty" in site.refused("installation", "move", "--yes")
    shutil.copytree(former, present)
    site.done("installation", "move", "--yes")
    site.done("sync", "acme")
    found = site.done("documents", "acme")["documents"]
    document = next(one["document_id"] for one in found if one["uri"].endswith("backup.md"))
    purged = site.done("purge", "acme", "--document", document, "--yes")
    assert purged["receipt"]["proof"]["found"]["former places"] == 0
    assert holding(former, TEXT) == []
    away = tmp_path / "away"
    former.rename(away)
    (production.home / "tenants.yaml").write_text("tenants: []\n")
    result = site.run("tenants", "remove", "acme", "--yes")
    assert f"not searched: the lake at {former}" in result.err
    assert f"rag-assets installation forget lake {former} --yes" in result.err
    receipt = site.done("receipts")["receipts"][-1]
    assert receipt["proof"]["complete"] is False
    assert str(former) in receipt["proof"]["places not seen"][0]
    site.done("installation", "forget", "lake", str(former), "--yes")
    places = [p["address"] for p in site.done("installation", "show")["places"]]
    assert str(former) not in places


def test_markers_are_written_once(production: Site) -> None:
    local = production.home / ".local"
    files = [path for name in (MARKER, "anchor") for path in local.rglob(name)]
    assert len(files) == 6
    before = [path.stat() for path in files]
    production.done("tenants", "list")
    assert [path.stat() for path in files] == before


@pytest.mark.parametrize("renamed", ["home", "lake"])
def test_nothing_is_left_where_a_folder_was_renamed(
    production: Site, tmp_path: Path, renamed: str
) -> None:
    site = Site(production.home, production.environment)
    if renamed == "home":
        site = Site(tmp_path / "moved", production.environment)
        production.home.rename(site.home)
        site.done("tenants", "list")
    else:
        site.environment["RAG_ASSETS_LAKE_URL"] = str(tmp_path / "lake")
        (production.home / ".local" / "lake").rename(tmp_path / "lake")
        site.done("installation", "move", "--yes")
    places = site.done("installation", "show")["places"]
    assert {place["kind"] for place in places} == {"lake", "blobs", "index", "vectors", "cluster"}
    assert [place for place in places if place["left_at"]] == []
    assert site.done("tenants", "remove", "acme", "--yes")["complete"]


def test_a_restored_catalog_recalls_places_that_it_has_forgotten(
    production: Site, copied_database: str, postgres_url: str, tmp_path: Path
) -> None:
    site = Site(production.home, dict(production.environment))
    prefix, database = (
        site.environment[n] for n in ("RAG_ASSETS_INDEX_PREFIX", "RAG_ASSETS_DATABASE_URL")
    )
    lake = production.home / ".local" / "lake"
    for name in ("first", "second"):
        copy(lake, tmp_path / name)
        lake = tmp_path / name
        site.environment |= {"RAG_ASSETS_LAKE_URL": str(lake)}
        site.environment |= {"RAG_ASSETS_INDEX_PREFIX": f"{prefix}{name}"}
        site.done("installation", "move", "--yes")
    drop_database(postgres_url, name_of(database))
    execute(postgres_url, "CREATE DATABASE {} TEMPLATE {}", name_of(database), prefix + "copy")
    site.done("installation", "move", "--yes")
    places = site.done("installation", "show")["places"]
    former = {place["address"] for place in places if place["left_at"]}
    assert {str(tmp_path / "first"), f"{prefix}first"} <= former
    site.done("installation", "accept-restore", "--yes")
    site.done("sync", "acme", "--accept-catalog")
    found = site.done("documents", "acme")["documents"]
    document = next(one["document_id"] for one in found if one["uri"].endswith("backup.md"))
    assert site.done("purge", "acme", "--document", document, "--yes")["complete"]
    assert holding(tmp_path / "first", TEXT) == []
    site.done("installation", "forget", "lake", str(tmp_path / "first"), "--yes")
    places = site.done("installation", "show")["places"]
    assert str(tmp_path / "first") not in {place["address"] for place in places}


def test_a_store_of_blobs_that_is_not_mounted_takes_no_upload(
    production: Site, tmp_path: Path
) -> None:
    blobs = production.home / ".local" / "blobs"
    blobs.rename(tmp_path / "unmounted")
    blobs.mkdir()
    upload = tmp_path / "upload.md"
    upload.write_text("# Other\n\nThe contract ends in June.\n")
    for command in (["uploads", "add", "acme", str(upload)], ["sync", "acme"], ["compact"]):
        refusal = production.refused(*command)
        assert "not mounted" in refusal
        assert str(blobs) in refusal
    assert list(blobs.iterdir()) == []
    assert "without-data blobs" in production.refused("installation", "move", "--yes")
    blobs.rmdir()
    (tmp_path / "unmounted").rename(blobs)
    production.done("uploads", "add", "acme", str(upload))
    production.done("sync", "acme")
    shutil.rmtree(blobs)
    production.done("installation", "move", "--yes", "--without-data", "blobs")
    production.done("tenants", "list")


def holding(folder: Path, words: str) -> list[Path]:
    """Return the files below a folder that contain words; files of the lake are decompressed."""
    import polars as pl

    found = []
    for path in folder.rglob("*.parquet"):
        frame = pl.read_parquet(path)
        if any(words in str(row) for row in frame.iter_rows()):
            found.append(path)
    return found


def test_a_second_home_neither_disables_nor_changes_tenants_of_the_first(
    production: Site, tmp_path: Path
) -> None:
    home = tmp_path / "worker"
    home.mkdir()
    lake, blobs = (str(production.home / ".local" / name) for name in ("lake", "blobs"))
    places = {"RAG_ASSETS_LAKE_URL": lake, "RAG_ASSETS_BLOBS_URL": blobs}
    worker = Site(home, {**production.environment, "RAG_ASSETS_HOME": str(home), **places})
    assert worker.done("tenants", "list")["tenants"][0]["state"] == "ACTIVE"
    worker.done("sync", "acme")
    assert production.done("tenants", "list")["tenants"][0]["state"] == "ACTIVE"
    listed = (production.home / "tenants.yaml").read_text()
    (home / "tenants.yaml").write_text(listed)
    worker.done("sync", "acme")
    Installation(home, worker.environment).configure("acme", retention_days=3)
    result = worker.run("sync", "acme")
    assert "rag-assets tenants claim acme" in result.err
    assert str(production.home) in result.err
    worker.done("tenants", "claim", "acme")
    (production.home / "tenants.yaml").write_text("tenants: []\n")
    production.done("sync", "--all")
    assert production.done("tenants", "list")["tenants"][0]["state"] == "ACTIVE"


def test_stored_keys_are_readable_after_the_home_was_moved(
    production: Site, tmp_path: Path
) -> None:
    environment = {**production.environment, "XDG_CONFIG_HOME": str(tmp_path / "config")}
    del environment["RAG_ASSETS_MASTER_KEY_FILE"]
    with pytest.MonkeyPatch.context() as patched:
        patched.delenv("RAG_ASSETS_MASTER_KEY_FILE")
        before = Site(production.home, environment)
        key = "sk-test-0123456789abcdef0123456789abcdef"
        assert before.run("keys", "set", "acme", "openai", stdin=key).code == 0
        moved = tmp_path / "moved"
        production.home.rename(moved)
        after = Site(moved, environment)
        [listed] = after.done("keys", "list", "acme")["keys"]
        assert listed["provider"] == "openai"
        assert after.run("keys", "rotate").code == 0  # decrypts every stored key
        [file] = (tmp_path / "config" / "rag-assets").glob("*.key")
        assert file.name == f"master-{after.id}.key"


def test_what_an_earlier_version_made_is_adopted_once(production: Site) -> None:
    """Neither catalog, index nor folders carry an id yet."""
    engine = create_engine(
        production.environment["RAG_ASSETS_DATABASE_URL"].replace(
            "postgresql://", "postgresql+psycopg://"
        )
    )
    with engine.begin() as connection:
        connection.execute(text("DELETE FROM rag_catalog.installation"))
        connection.execute(text("DELETE FROM rag_catalog.installation_places"))
        connection.execute(text("DELETE FROM rag_catalog.installation_homes"))
        connection.execute(text("UPDATE rag_catalog.tenants SET home = NULL"))
    engine.dispose()
    for marker in production.home.rglob(MARKER):
        marker.unlink()
    with Elasticsearch(production.environment["RAG_ASSETS_ELASTICSEARCH_URL"]) as client:
        marks = f"{production.environment['RAG_ASSETS_INDEX_PREFIX']}-marks"
        client.indices.delete(index=marks, ignore_unavailable=True)
        for name, body in indexes_of(production).items():
            client.indices.put_mapping(index=name, meta={})
            for alias, details in body["aliases"].items():
                if alias == build_write_alias(name):
                    client.indices.delete_alias(index=name, name=alias)
                    continue
                plain = {"bool": {"filter": details["filter"]["bool"]["filter"]}}
                action = {"index": name, "alias": alias, "filter": plain, "routing": "acme"}
                client.indices.update_aliases(actions=[{"add": action}])
    production.done("sync", "acme", "--repair")
    assert TEXT in " ".join(production.hits())
    for body in indexes_of(production).values():
        assert body["mappings"]["_meta"]["rag_assets"]["installation"] == production.id


def test_an_empty_catalog_with_the_home_of_another_is_refused(
    production: Site, postgres_url: str
) -> None:
    name = f"{production.environment['RAG_ASSETS_INDEX_PREFIX']}e"
    url = create_database(postgres_url, name)
    try:
        refusal = production.refused("tenants", "list", RAG_ASSETS_DATABASE_URL=url)
        assert "the catalog is empty" in refusal
        assert production.id in refusal
    finally:
        drop_database(postgres_url, name)
