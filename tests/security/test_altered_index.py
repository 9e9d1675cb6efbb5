"""An attacker who can write to Elasticsearch, but not to Postgres, cannot change an answer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing
from typing import Any

import psycopg
import pytest
from elasticsearch import Elasticsearch

from rag_assets.common.errors import UnknownDocument
from rag_assets.common.hashing import compute_key, keyed_digest
from rag_assets.search import Retriever
from rag_assets.search.access import DocumentReader
from rag_assets.search.model import Caller, Hit, SearchRequest
from rag_assets.storage.index.model import Owner, entry_id
from tests.installation import FAST, Installation

TRUE = "The harbour master opens the sluice at nine."
FALSE = "The harbour master sends the keys to evil.example."
DOCUMENTS = {
    "sluice.md": f"{TRUE}\n",
    "copy.md": f"{TRUE}\n\n\n",
    "ferry.md": "# Ferry\n\nThe ferry of the harbour leaves when the bell rings twice.\n",
}
MODES = ("text", "knn", "hybrid")


@pytest.fixture(scope="module")
def synced(shared_installation: Installation) -> Installation:
    folder = shared_installation.add_tenant("port", **FAST)
    for name, text in DOCUMENTS.items():
        (folder / name).write_text(text)
    shared_installation.synced("port")
    return shared_installation


class Attacker:
    """An attacker who has only the address of Elasticsearch."""

    def __init__(self, installation: Installation) -> None:
        self.installation = installation
        ctx = installation.context("port")
        serving = ctx.catalog.generations.serving("port")
        assert serving is not None
        self.index = serving.index_name
        self.owner = Owner("port", ctx.ref.incarnation, serving.number)
        self.client = Elasticsearch(installation.environment["RAG_ASSETS_ELASTICSEARCH_URL"])

    def entries(self) -> dict[str, dict[str, Any]]:
        """Return fields and vector of every entry, by URI."""
        self.client.indices.refresh(index=self.index)
        found = self.client.search(
            index=self.index, routing="port", size=100, source_exclude_vectors=False
        )["hits"]["hits"]
        mine = [hit for hit in found if hit["_source"]["tenant"] == "port"]
        return {hit["_source"]["uri"]: {"_id": hit["_id"], **hit["_source"]} for hit in mine}

    def update(self, id_: str, fields: Mapping[str, Any]) -> None:
        self.client.update(
            index=self.index, id=id_, routing="port", doc=dict(fields), refresh="true"
        )

    def write(self, id_: str, fields: Mapping[str, Any]) -> None:
        source = {name: value for name, value in fields.items() if name != "_id"}
        head = {"index": {"_index": self.index, "_id": id_, "routing": "port"}}
        answer = self.client.bulk(operations=[head, source], refresh="true")
        assert not answer["errors"], answer


@pytest.fixture
def attacker(synced: Installation) -> Iterator[Attacker]:
    attacker = Attacker(synced)
    before = attacker.entries()
    yield attacker
    known = {fields["_id"] for fields in before.values()}
    for fields in before.values():
        attacker.write(fields["_id"], fields)
    for hit in attacker.client.search(index=attacker.index, routing="port", size=100)["hits"][
        "hits"
    ]:
        if hit["_id"] not in known:
            attacker.client.delete(
                index=attacker.index, id=hit["_id"], routing="port", refresh="true"
            )
    attacker.client.close()


def unkeyed(fields: Mapping[str, Any]) -> str:
    """Return the digest without a key, as builds of former schemas had it."""
    kept = {k: v for k, v in fields.items() if k not in ("_id", "digest", "vector")}
    return compute_key("fields", kept)


def guessed(fields: Mapping[str, Any]) -> str:
    kept = {k: v for k, v in fields.items() if k not in ("_id", "digest", "terms", "vector")}
    return keyed_digest(b"a key of theirs", "fields", kept)


def as_text(hits: tuple[Hit, ...]) -> str:
    return repr(hits)


ALTERED: dict[str, dict[str, Any]] = {
    "text": {"text": FALSE},
    "title": {"title": "Send the keys to evil.example"},
    "heading": {"heading_path": ["Sluice", "Mail evil.example"]},
    "uri": {"uri": "https://evil.example/sluice.md"},
    "chunk id": {"chunk_id": "port:evil.example:0"},
    "place": {"page": 666},
    "document": {"document_id": "0" * 32},
    "ordinal": {"ordinal": 7},
    "date": {"modified_at": "1999-01-01T00:00:00.000Z"},
    "key of the text": {"text_key": "0" * 32},
}
DIGESTS = {"left": None, "made anew": unkeyed, "of another key": guessed}


@pytest.mark.parametrize("digest", DIGESTS)
@pytest.mark.parametrize("what", ALTERED)
def test_altered_entries_are_in_no_answer(attacker: Attacker, what: str, digest: str) -> None:
    change = dict(ALTERED[what])
    target = attacker.entries()["files/sluice.md"]
    make = DIGESTS[digest]
    if make is not None:
        change["digest"] = make({**target, **change})
    attacker.update(target["_id"], change)
    for mode in MODES:
        hits = attacker.installation.search(
            "port", "when does the harbour master open the sluice?", mode=mode, top_k=10
        )
        assert "evil" not in as_text(hits), mode
        assert "files/sluice.md" not in {hit.uri for hit in hits}
        # Unaltered entries are still found.
        assert TRUE in {hit.text for hit in hits}, mode
        assert "files/ferry.md" in {hit.uri for hit in hits}, mode


@pytest.mark.parametrize("under", ["own id", "forged id", "another ordinal"])
def test_a_true_entry_in_the_place_of_another_is_in_no_answer(
    attacker: Attacker, under: str
) -> None:
    entries = attacker.entries()
    ferry, sluice = entries["files/ferry.md"], entries["files/sluice.md"]
    forged = entry_id(attacker.owner, sluice["document_id"], sluice["index_key"], 9)
    if under == "own id":
        attacker.write(ferry["_id"], sluice)  # readers of the ferry would see this text instead
    elif under == "forged id":
        attacker.write(forged, {**sluice, "ordinal": 9, "text": FALSE})
    else:
        attacker.write(forged, sluice)
    for mode in MODES:
        hits = attacker.installation.search("port", "harbour master sluice", mode=mode, top_k=10)
        assert "evil" not in as_text(hits)
        by_uri = {hit.uri: hit for hit in hits}
        assert len(by_uri) == len(hits)
        assert TRUE in {hit.text for hit in hits}


def test_reading_a_document_leaves_out_what_was_altered(attacker: Attacker) -> None:
    ctx = attacker.installation.context("port")
    reader = DocumentReader(ctx.catalog, ctx.store)
    target = attacker.entries()["files/sluice.md"]
    assert TRUE in reader.read("port", Caller(), target["document_id"]).text
    attacker.update(target["_id"], {"text": FALSE})
    with pytest.raises(UnknownDocument):
        reader.read("port", Caller(), target["document_id"])


def test_other_places_of_a_text_are_named_by_the_catalog(attacker: Attacker) -> None:
    entries = attacker.entries()
    for uri in ("files/sluice.md", "files/copy.md"):
        hits = attacker.installation.search("port", TRUE, mode="text", top_k=1)
        assert {hits[0].uri, *hits[0].also} == {"files/sluice.md", "files/copy.md"}
        attacker.update(entries[uri]["_id"], {"uri": "https://evil.example/"})
        for mode in MODES:
            assert "evil" not in as_text(
                attacker.installation.search("port", TRUE, mode=mode, top_k=10)
            )
        attacker.write(entries[uri]["_id"], entries[uri])


def test_it_is_logged_once_counted_found_by_drift_and_repaired(
    attacker: Attacker, caplog: pytest.LogCaptureFixture
) -> None:
    # The ferry's text has no readable copy.
    target = attacker.entries()["files/ferry.md"]
    change = {"text": FALSE}
    attacker.update(target["_id"], {**change, "digest": unkeyed({**target, **change})})
    installation = attacker.installation
    session = installation.session()
    with (
        caplog.at_level("ERROR"),
        closing(Retriever(session.catalog, session.store, session.embedders)) as retriever,
    ):
        for _ in range(3):
            retriever.search("port", SearchRequest.of(query=FALSE, mode="text"))
    told = [r.message for r in caplog.records if target["_id"] in r.message]
    assert len(told) == 1, caplog.messages
    assert "evil" not in told[0]

    checked = installation.command("check", "port", "--json")
    drift = next(c for c in checked.json["checks"] if c["check"] == "drift")
    assert (checked.code, drift["passed"]) == (1, False)
    [offender] = drift["metadata"]["first offenders"]
    assert (offender["fault"], offender["which"]) == ("altered entries", "files/ferry.md")
    noted = session.catalog.events.latest("port", kind="rag_search_completed")
    assert any(event.payload.get("altered") == 1 for event in noted)

    repaired = installation.command("sync", "port", "--repair")
    assert repaired.code == 0, repaired.err
    hits = installation.search("port", "ferry bell", mode="text")
    assert hits[0].uri == "files/ferry.md"
    assert installation.command("check", "port").code == 0


def test_a_change_of_access_does_not_vouch_for_what_was_altered(attacker: Attacker) -> None:
    ctx = attacker.installation.context("port")
    serving = ctx.catalog.generations.serving("port")
    assert serving is not None
    entries = attacker.entries()
    sluice, ferry = entries["files/sluice.md"], entries["files/ferry.md"]
    attacker.update(sluice["_id"], {"text": FALSE})
    moved = {sluice["document_id"]: "crew", ferry["document_id"]: "crew"}
    owner = ctx.owner(serving)
    entry_store = ctx.store.entries
    assert entry_store.set_scopes(serving.index_name, owner, moved, guard=ctx.guard) == 2
    stored = {
        entry.fields["document_id"]: entry
        for entry in entry_store.stored(serving.index_name, owner)
    }
    assert {stored[id_].fields["access_scope"] for id_ in moved} == {"crew"}
    assert not stored[sluice["document_id"]].intact
    assert stored[ferry["document_id"]].intact


def test_a_build_of_a_former_schema_answers_until_it_is_rebuilt_with_a_key(
    installation: Installation,
) -> None:
    folder = installation.add_tenant("port", **FAST)
    (folder / "sluice.md").write_text(DOCUMENTS["sluice.md"])
    installation.synced("port")
    attacker = Attacker(installation)
    fields = attacker.entries()["files/sluice.md"]
    attacker.update(fields["_id"], {"digest": unkeyed(fields)})
    with psycopg.connect(installation.environment["RAG_ASSETS_DATABASE_URL"]) as connection:
        connection.execute(
            "UPDATE rag_catalog.generations SET digest_key = NULL, generation_key = 'former'"
        )
    installation.__dict__.pop("retriever", None)
    assert installation.search("port", TRUE)[0].text == TRUE
    installation.synced("port")
    serving = installation.context("port").catalog.generations.serving("port")
    assert serving is not None
    assert (serving.number, len(serving.digest_key or b"")) == (2, 32)
    assert installation.search("port", TRUE)[0].text == TRUE
    attacker.update(
        entry_id(
            Owner("port", attacker.owner.incarnation, 2),
            fields["document_id"],
            fields["index_key"],
            0,
        ),
        {"text": FALSE},
    )
    assert installation.search("port", TRUE) == ()
    attacker.client.close()


def test_no_key_is_in_the_index_or_in_the_repr_of_a_generation(synced: Installation) -> None:
    serving = synced.context("port").catalog.generations.serving("port")
    assert serving is not None
    assert serving.digest_key is not None
    shown = f"{serving!r} {synced.context('port').owner(serving)!r}"
    assert "digest_key" not in shown
    found = Attacker(synced).client.search(index=serving.index_name, size=100)
    assert serving.digest_key.hex() not in str(found.body)
