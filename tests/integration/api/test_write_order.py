"""The order of writes: an older write never replaces a newer one, in whatever order they arrive."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.integration.api.conftest import Api

PATH = "/rag/records/page/ordered"
NINE, TEN, ELEVEN = (f"2026-03-02T{hour}:00:00Z" for hour in ("09", "10", "11"))


@pytest.fixture(autouse=True)
def _leave_nothing(api: Api) -> Iterator[None]:
    """Delete the pages of the test, because other modules use the tenant too."""

    def pages() -> set[str]:
        uris = {document.uri for document in api.driver.session.catalog.documents.all("acme")}
        return {uri for uri in uris if uri.startswith("pushed/")}

    before = pages()
    yield
    api.driver.sync("acme")
    for uri in pages() - before:
        assert remove(api, f"/rag/records/{uri.removeprefix('pushed/')}")[0] in (200, 202)
    api.driver.sync("acme")


def put(api: Api, text: str, path: str = PATH, **fields: Any) -> tuple[int, str]:
    answer = api.send("PUT", path, {"text": text, **fields})
    return answer.status_code, answer.json()["outcome"]


def remove(api: Api, path: str = PATH, **parameters: Any) -> tuple[int, str]:
    headers = {"Authorization": f"Bearer {api.token('chief', role='admin')}"}
    answer = api.client.request("DELETE", path, params=parameters, headers=headers)
    return answer.status_code, answer.json()["outcome"]


def write_lines(api: Api, *lines: dict[str, Any]) -> list[dict[str, Any]]:
    headers = {"Authorization": f"Bearer {api.token('chief', role='admin')}"}
    content = "\n".join(json.dumps(line) for line in lines)
    answer = api.client.post("/rag/records", content=content, headers=headers)
    assert answer.status_code == 200, answer.text
    found: list[dict[str, Any]] = answer.json()["lines"]
    return found


def texts(api: Api, query: str) -> list[str]:
    api.driver.sync("acme")
    hits = api.ask(api.token(), query=query, source_types=["page"]).json()["hits"]
    return [hit["text"] for hit in hits]


def test_older_writes_of_a_record_are_outdated_and_change_nothing(api: Api) -> None:
    assert put(api, "The walrus costs ten.", updated_at=TEN) == (202, "queued")
    assert put(api, "The walrus costs nine.", updated_at=NINE) == (200, "outdated")
    assert texts(api, "walrus costs") == ["The walrus costs ten."]
    assert remove(api, updated_at=NINE) == (200, "outdated")
    assert texts(api, "walrus costs") == ["The walrus costs ten."]
    assert put(api, "The walrus costs ten.", updated_at=TEN) == (202, "unchanged")
    # A write without a time is ordered by its arrival, and keeps a later time.
    assert put(api, "The walrus is free.") == (202, "queued")
    assert put(api, "The walrus costs nine.", updated_at=NINE) == (200, "outdated")
    assert remove(api) == (202, "removed")


def test_an_older_write_does_not_revive_a_deleted_record(api: Api) -> None:
    path = "/rag/records/page/deleted"
    put(api, "The ocelot sleeps.", path, updated_at=NINE)
    assert remove(api, path, updated_at=ELEVEN) == (202, "removed")
    assert put(api, "The ocelot sleeps.", path, updated_at=TEN) == (200, "outdated")
    assert put(api, "The ocelot.", path, updated_at=TEN, metadata={"is_secret": True}) == (
        200,
        "outdated",
    )
    assert texts(api, "ocelot sleeps") == []
    assert put(api, "The ocelot is back.", path, updated_at=ELEVEN) == (202, "queued")
    assert texts(api, "ocelot sleeps") == ["The ocelot is back."]
    assert remove(api, path) == (202, "removed")


def test_a_version_orders_writes_whatever_their_times(api: Api) -> None:
    path = "/rag/records/page/versioned"
    assert put(api, "The badger, second.", path, version=2, updated_at=NINE) == (202, "queued")
    assert put(api, "The badger, first.", path, version=1, updated_at=TEN) == (200, "outdated")
    assert remove(api, path, version=1) == (200, "outdated")
    assert put(api, "The badger, third.", path, version=3, updated_at=NINE) == (202, "queued")
    assert texts(api, "badger") == ["The badger, third."]
    assert remove(api, path, version=4) == (202, "removed")
    assert put(api, "The badger, third.", path, version=3) == (200, "outdated")


def test_lines_are_ordered_like_single_writes(api: Api) -> None:
    record = {"type": "page", "id": "line"}
    first = write_lines(
        api,
        {"op": "put", **record, "text": "The heron, ten.", "updated_at": TEN},
        {"op": "put", **record, "text": "The heron, nine.", "updated_at": NINE},
        {"op": "delete", **record, "updated_at": NINE},
    )
    assert [line["outcome"] for line in first] == ["queued", "outdated", "outdated"]
    assert texts(api, "heron") == ["The heron, ten."]
    [stale] = write_lines(api, {"op": "delete", **record, "if_match": '"another"'})
    assert stale["outcome"] == "changed-meanwhile"
    gone = write_lines(
        api,
        {"op": "delete", **record, "if_match": first[0]["etag"], "updated_at": ELEVEN},
        {"op": "put", **record, "text": "The heron, ten.", "updated_at": TEN},
        {"op": "delete", **record, "updated_at": "yesterday"},
    )
    assert [line["outcome"] for line in gone] == ["removed", "outdated", "invalid"]
    assert texts(api, "heron") == []


def test_if_match_lets_nobody_replace_a_version_that_he_has_not_seen(api: Api) -> None:
    path = "/rag/records/page/matched"
    headers = {"Authorization": f"Bearer {api.token('chief', role='admin')}"}

    def write(method: str, etag: str, text: str | None = None) -> Any:
        body = None if text is None else {"text": text}
        return api.client.request(method, path, json=body, headers={**headers, "If-Match": etag})

    assert write("PUT", "*", "The lynx.").status_code == 412, "there is no record"
    first = api.send("PUT", path, {"text": "The lynx, one."}).headers["ETag"]
    assert api.client.get(path, headers=headers).headers["ETag"] == first
    second = write("PUT", first, "The lynx, two.")
    assert (second.status_code, second.headers["ETag"] != first) == (202, True)
    refused = write("PUT", first, "The lynx, three.")
    assert refused.status_code == 412
    assert refused.json()["type"] == "urn:rag-assets:problem:changed-meanwhile"
    assert write("DELETE", first).status_code == 412
    assert texts(api, "lynx") == ["The lynx, two."]
    assert write("DELETE", second.headers["ETag"]).json()["outcome"] == "removed"
