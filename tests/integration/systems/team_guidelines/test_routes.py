"""Team guidelines over HTTP: every endpoint below /api, with each of its responses."""

from __future__ import annotations

import base64
import re
import socket
import time
from array import array
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import jwt
import pytest
from ruamel.yaml import YAML
from sqlalchemy import event

from rag_assets.api.settings import ServiceSettings
from rag_assets.common.failure_kinds import WORDS
from rag_assets.ingest.parsing.detection import OLE2_MARK
from rag_assets.storage.blobs.store import open_blobs
from rag_assets.storage.catalog.accounts.usage import Usage
from rag_assets.storage.catalog.database import TenantRef
from rag_assets.storage.catalog.uploads.model import uploads
from tests.driving import stages_of
from tests.dumps import is_blob
from tests.embedding_server import EmbeddingServer, Fault, Spoilt, Status, embedding_server
from tests.integration.api.conftest import ISSUER, SECRET, SETTINGS, Api, running
from tests.unit.ingest.parsing import pdfs

SEALS = b"# Seals\n\nThe lighthouse keeper counted seventeen grey seals at dawn.\n"
BOATS = b"# Boats\n\nEvery boat is moored with two lines before nightfall.\n"
PDF = b"%PDF-1.7\nnothing that could be read follows\n"
OLE2 = OLE2_MARK + bytes(4_096) + "WordDocument".encode("utf-16-le")
KEY = "sk-proj-planted0123456789abcdefWXYZ"


@dataclass
class Guidelines:
    """An application's client, by default an admin of its organization."""

    api: Api
    address: str
    client: httpx.Client
    server: EmbeddingServer
    organization: str = "harbour"
    _made: Counter[str] = field(default_factory=Counter)

    def token(self, subject: str = "chief", **changes: Any) -> str:
        claims = {"sub": subject, "iss": ISSUER, "exp": int(time.time()) + 300, "role": "admin"}
        claims |= {"organization": self.organization, **changes}
        return jwt.encode({k: v for k, v in claims.items() if v is not None}, SECRET)

    def ask(
        self, method: str, path: str, body: Any = None, *, token: str = "", **more: Any
    ) -> httpx.Response:
        headers = {"Authorization": f"Bearer {token or self.token()}"}
        return self.client.request(method, f"/api{path}", json=body, headers=headers, **more)

    def send(
        self,
        project: str,
        name: str,
        content: bytes,
        *,
        token: str = "",
        **fields: str,
    ) -> httpx.Response:
        headers = {"Authorization": f"Bearer {token or self.token()}"}
        return self.client.post(
            f"/api/projects/{project}/guidelines/upload",
            files={"file": (name, content)},
            data=fields,
            headers=headers,
        )

    def project(self, name: str, *, key: bool = True, **settings: Any) -> str:
        """Create a project that accepts uploads; return its id."""
        self._made[name] += 1
        project = f"{name}-{self._made[name]}"
        assert self.ask("PUT", f"/projects/{project}", settings).status_code == 201
        if key:
            said = self.ask("PUT", f"/projects/{project}/keys/openai", {"key": KEY})
            assert said.status_code == 200, said.text
        return project

    def tenant(self, project: str) -> str:
        return str(self.ask("GET", f"/projects/{project}").json()["tenant"])

    def sync(self, project: str) -> Counter[str]:
        return self.api.driver.sync(self.tenant(project))

    def uploaded(self, project: str, name: str, content: bytes, **fields: str) -> str:
        said = self.send(project, name, content, **fields)
        assert said.status_code == 202, said.text
        return str(said.json()["document"]["_id"])

    def document(self, project: str, document_id: str) -> dict[str, Any]:
        said = self.ask("GET", f"/projects/{project}/guidelines/{document_id}")
        assert said.status_code == 200, said.text
        found: dict[str, Any] = said.json()
        return found

    def found(self, project: str, query: str) -> set[str]:
        """Return the titles that a search of the project finds, with any cosine."""
        answer = self.client.post(
            "/rag/query",
            json={"query": query, "tenant": self.tenant(project), "min_score": -1.0},
            headers={"Authorization": f"Bearer {self.token()}"},
        )
        assert answer.status_code == 200, answer.text
        return {hit["title"] for hit in answer.json()["hits"]}

    def embedded(self) -> int:
        return sum(self.server.answered.values())


@pytest.fixture(scope="module")
def guidelines(api: Api, address: str) -> Iterator[Guidelines]:
    with embedding_server(dimensions=1536) as server:
        path = Path(api.installation.home) / "tenants.yaml"
        document = YAML().load(path.read_text())
        providers = [
            {"provider": "openai", "base_url": server.url, "price": {"per_million": 1}},
            {"provider": "gemini", "base_url": server.origin, "price": {"per_million": 1}},
        ]
        document["projects"] = {"embedder": {"providers": providers}}
        with path.open("w") as stream:
            YAML().dump(document, stream)
        # A refused body is not read, so the connection ends.
        alone = httpx.Limits(max_keepalive_connections=0)
        with httpx.Client(base_url=address, timeout=60, limits=alone) as client:
            made = Guidelines(api, address, client, server)
            on = made.ask("PUT", "/organizations/harbour", {"ragGuidelines": True})
            assert on.status_code == 200, on.text
            yield made


def kind(response: httpx.Response) -> tuple[int, str]:
    return response.status_code, response.json()["type"].rpartition(":")[2]


def kept_files(guidelines: Guidelines, project: str) -> list[Path]:
    root = Path(guidelines.api.driver.session.settings.blobs_url) / guidelines.tenant(project)
    return sorted(path for path in root.rglob("*") if is_blob(path))


# -- organizations and projects


def test_an_organization_has_settings_and_projects(guidelines: Guidelines) -> None:
    quay = guidelines.token(organization="quay")
    fresh = guidelines.ask("GET", "/organizations/quay", token=quay)
    assert (fresh.status_code, fresh.json()) == (
        200,
        {
            "organizationId": "quay",
            "ragGuidelines": False,
            "chatModel": None,
            "projects": [],
            "updatedAt": None,
        },
    )
    body = {"ragGuidelines": True, "chatModel": "gpt-4o"}
    changed = guidelines.ask("PUT", "/organizations/quay", body, token=quay).json()
    assert (changed["ragGuidelines"], changed["chatModel"]) == (True, "gpt-4o")
    made = guidelines.ask("PUT", "/projects/crane", {"name": "Crane"}, token=quay)
    assert (made.status_code, made.json()["chatModel"]) == (201, "gpt-4o")
    again = guidelines.ask("PUT", "/organizations/quay", {"chatModel": None}, token=quay).json()
    assert (again["ragGuidelines"], again["chatModel"]) == (True, None)
    assert again["projects"] == [{"projectId": "crane", "name": "Crane", "tenant": "quay.crane"}]
    assert kind(guidelines.ask("GET", "/organizations/quay")) == (403, "forbidden")
    for token in (
        guidelines.token(organization="quay", role="member"),
        guidelines.token(organization=None, tenants=["quay.crane"]),
    ):
        assert kind(guidelines.ask("PUT", "/organizations/quay", {}, token=token))[0] == 403


def test_a_project_is_made_shown_and_changed(guidelines: Guidelines) -> None:
    body = {"name": "Pier", "minScore": 0.4, "caps": {"perMonth": 3}, "provider": "openai"}
    made = guidelines.ask("PUT", "/projects/pier", body)
    assert made.status_code == 201
    shown = made.json()
    assert (shown["projectId"], shown["organizationId"]) == ("pier", "harbour")
    assert (shown["tenant"], shown["threshold"]) == ("harbour.pier", 0.4)
    assert shown["embedder"].startswith("openai/text-embedding-3-small@1536")
    assert shown["caps"] == {"perRun": None, "perDay": None, "perMonth": 3.0}
    assert shown["key"] == {
        "provider": "openai",
        "state": "missing",
        "from": None,
        "address": "/api/projects/pier/keys/openai",
        "worked": None,
    }
    again = guidelines.ask("PUT", "/projects/pier", {"minScore": None})
    assert (again.status_code, again.json()["threshold"], again.json()["name"]) == (
        200,
        0.75,
        "Pier",
    )
    assert guidelines.ask("GET", "/projects/pier").json() == again.json()
    wrong = guidelines.ask("PUT", "/projects/pier", {"base_url": "http://elsewhere.example"})
    assert kind(wrong) == (422, "invalid-request")
    assert kind(guidelines.ask("PUT", "/projects/pier", {"minScore": 7}))[0] == 422


def test_unknown_and_foreign_projects_cannot_be_told_apart(guidelines: Guidelines) -> None:
    project = guidelines.project("secret")
    other = guidelines.token(organization="elsewhere")
    document = guidelines.uploaded(project, "seals.md", SEALS)
    paths = ["", "/keys", "/guidelines", f"/guidelines/{document}", "/guidelines/usage"]
    for path in paths:
        answers = [
            guidelines.ask("GET", f"/projects/{name}{path}", token=other)
            for name in (project, "never-made")
        ]
        assert [kind(answer) for answer in answers] == [(404, "unknown-project")] * 2
        assert len({answer.json()["detail"] for answer in answers}) == 1
    narrow = guidelines.token(organization=None, tenants=[guidelines.tenant(project)])
    assert guidelines.ask("GET", f"/projects/{project}", token=narrow).status_code == 200
    assert kind(guidelines.ask("PUT", "/projects/new", {}, token=narrow))[0] == 404
    guidelines.ask("DELETE", f"/projects/{project}/guidelines/{document}")


def test_members_and_strangers_are_refused_everywhere(guidelines: Guidelines) -> None:
    project = guidelines.project("closed")
    member = guidelines.token(role="member")
    id_ = "0" * 32
    asked = [
        ("GET", "/organizations/harbour", None),
        ("PUT", "/organizations/harbour", {}),
        ("GET", f"/projects/{project}", None),
        ("PUT", f"/projects/{project}", {}),
        ("GET", f"/projects/{project}/keys", None),
        ("PUT", f"/projects/{project}/keys/openai", {"key": KEY}),
        ("DELETE", f"/projects/{project}/keys/openai", None),
        ("POST", f"/projects/{project}/keys/openai/test", None),
        ("GET", "/organizations/harbour/keys", None),
        ("PUT", "/organizations/harbour/keys/openai", {"key": KEY}),
        ("DELETE", "/organizations/harbour/keys/openai", None),
        ("POST", "/organizations/harbour/keys/openai/test", None),
        ("GET", f"/projects/{project}/guidelines", None),
        ("GET", f"/projects/{project}/guidelines/usage", None),
        ("GET", f"/projects/{project}/guidelines/{id_}", None),
        ("PATCH", f"/projects/{project}/guidelines/{id_}", {"enabled": True}),
        ("DELETE", f"/projects/{project}/guidelines/{id_}", None),
        ("POST", f"/projects/{project}/guidelines/{id_}/retry", None),
        ("GET", f"/projects/{project}/guidelines/{id_}/chunks", None),
        ("GET", f"/projects/{project}/guidelines/{id_}/file", None),
    ]
    for method, path, body in asked:
        assert kind(guidelines.ask(method, path, body, token=member)) == (403, "forbidden"), path
        assert guidelines.ask(method, path, body, token="nobody").status_code == 401, path
    assert kind(guidelines.send(project, "a.md", SEALS, token=member)) == (403, "forbidden")
    assert guidelines.send(project, "a.md", SEALS, token="nobody").status_code == 401
    for path in ("", "/chunks", "/file"):
        said = guidelines.ask("GET", f"/projects/{project}/guidelines/{id_}{path}")
        assert kind(said) == (404, "unknown-document")
    gone = guidelines.ask("DELETE", f"/projects/{project}/guidelines/{id_}")
    assert (gone.status_code, gone.json()) == (202, {"_id": id_, "outcome": "unchanged"})


def test_a_project_of_the_operators_is_not_changed(guidelines: Guidelines) -> None:
    path = guidelines.api.installation.home / "tenants.yaml"
    document = YAML().load(path.read_text())
    entry = {"id": "fixed", "profile": "team-guidelines", "organization": "harbour"}
    document["tenants"].append({**entry, "project": "fixed"})
    with path.open("w") as stream:
        YAML().dump(document, stream)
    _ = guidelines.api.installation.session().catalog
    said = guidelines.ask("PUT", "/projects/fixed", {"name": "Mine"})
    assert kind(said) == (409, "configured-by-operator")
    assert guidelines.ask("GET", "/projects/fixed").json()["tenant"] == "fixed"


# -- keys


def test_keys_are_set_tested_inherited_and_deleted(guidelines: Guidelines) -> None:
    cape = guidelines.token(organization="cape")
    guidelines.ask("PUT", "/projects/light", {}, token=cape)
    assert guidelines.ask("GET", "/projects/light/keys", token=cape).json() == {"keys": []}
    lacking = guidelines.ask("POST", "/projects/light/keys/openai/test", token=cape)
    assert kind(lacking) == (402, "no-provider-key")
    put = guidelines.ask("PUT", "/organizations/cape/keys/openai", {"key": KEY}, token=cape)
    assert [key["from"] for key in put.json()["keys"]] == ["organization"]
    [inherited] = guidelines.ask("GET", "/projects/light/keys", token=cape).json()["keys"]
    assert (inherited["from"], inherited["lastFour"]) == ("organization", "WXYZ")
    state = guidelines.ask("GET", "/projects/light", token=cape).json()["key"]
    assert (state["state"], state["from"]) == ("usable", "organization")
    own = guidelines.ask("PUT", "/projects/light/keys/openai", {"key": f"{KEY}own1"}, token=cape)
    assert [key["from"] for key in own.json()["keys"]] == ["project", "organization"]
    assert KEY not in own.text
    tested = guidelines.ask("POST", "/projects/light/keys/openai/test", token=cape)
    assert (tested.status_code, tested.json()["worked"]) == (200, True)
    assert tested.json()["latencyMs"] >= 0
    assert f"{KEY}own1" in guidelines.server.keys
    guidelines.server.always = Status(401)
    try:
        refused = guidelines.ask("POST", "/organizations/cape/keys/openai/test", token=cape)
    finally:
        guidelines.server.always = None
    assert (refused.status_code, refused.json()["worked"]) == (200, False)
    assert refused.json()["reason"]
    left = guidelines.ask("DELETE", "/projects/light/keys/openai", token=cape)
    assert [key["from"] for key in left.json()["keys"]] == ["organization"]
    none = guidelines.ask("DELETE", "/organizations/cape/keys/openai", token=cape)
    assert none.json() == {"keys": []}


@pytest.mark.parametrize("key", ["", "two words", "$NAME_OF_A_VARIABLE", "x" * 5_000])
def test_what_cannot_be_a_key_is_refused_and_not_repeated(guidelines: Guidelines, key: str) -> None:
    guidelines.ask("PUT", "/projects/pier", {})
    said = guidelines.ask("PUT", "/projects/pier/keys/openai", {"key": key})
    assert kind(said) == (422, "invalid-request")
    assert not key or key not in said.text
    unknown = guidelines.ask("PUT", "/projects/pier/keys/nobody", {"key": KEY})
    assert kind(unknown) == (422, "invalid-request")
    assert KEY not in unknown.text


# -- documents


def test_a_document_from_its_upload_to_its_end(guidelines: Guidelines) -> None:
    project = guidelines.project("whole")
    sent = guidelines.send(project, "../seals.md", SEALS)
    assert sent.status_code == 202
    assert sent.json()["duplicate"] is False
    document = sent.json()["document"]
    assert set(document) == {
        *("_id", "organizationId", "projectId", "fileName", "mimeType", "status", "chunkCount"),
        *("errorMessage", "errorKind", "uploadedBy", "createdAt", "updatedAt", "size", "stage"),
        *("done", "total", "tokenCount", "estimatedCost", "dropped", "retryAt", "enabled"),
        *("answers", "canRetry", "note"),
    }
    assert (document["fileName"], document["mimeType"]) == ("seals.md", "text/markdown")
    assert (document["status"], document["stage"]) == ("PROCESSING", "queued")
    assert (document["organizationId"], document["projectId"]) == ("harbour", project)
    assert (document["uploadedBy"], document["size"]) == ("jwt:chief", len(SEALS))
    id_ = document["_id"]
    assert guidelines.sync(project)
    ready = guidelines.document(project, id_)
    assert (ready["status"], ready["stage"], ready["answers"]) == ("READY", None, True)
    assert (ready["chunkCount"], ready["dropped"]) == (1, 0)
    assert ready["tokenCount"] > 5
    assert ready["estimatedCost"] == pytest.approx(ready["tokenCount"] / 1e6)
    again = guidelines.send(project, "again.md", SEALS)
    assert (again.status_code, again.json()["duplicate"]) == (200, True)
    assert again.json()["document"] == ready
    chunks = guidelines.ask("GET", f"/projects/{project}/guidelines/{id_}/chunks").json()
    assert (chunks["documentId"], chunks["answers"], chunks["dropped"]) == (id_, True, [])
    [chunk] = chunks["chunks"]
    assert (chunk["chunkIndex"], chunk["headingPath"], chunk["page"]) == (0, ["Seals"], None)
    assert "grey seals" in chunk["text"]
    assert chunk["tokens"] == ready["tokenCount"]
    file = guidelines.ask("GET", f"/projects/{project}/guidelines/{id_}/file")
    assert (file.content, file.headers["content-type"]) == (SEALS, "text/markdown; charset=utf-8")
    assert file.headers["content-disposition"] == "attachment; filename*=utf-8''seals.md"
    assert file.headers["x-content-type-options"] == "nosniff"
    assert guidelines.found(project, "seals") == {"Seals"}
    assert metadata_of(guidelines, project) == [{"organizationId": "harbour", "projectId": project}]
    gone = guidelines.ask("DELETE", f"/projects/{project}/guidelines/{id_}")
    assert (gone.status_code, gone.json()) == (202, {"_id": id_, "outcome": "removed"})
    assert guidelines.found(project, "seals") == set()
    assert kept_files(guidelines, project) == []
    # The same bytes can be uploaded again, and no text is paid for twice.
    before = guidelines.embedded()
    anew = guidelines.uploaded(project, "seals.md", SEALS)
    guidelines.sync(project)
    assert guidelines.document(project, anew)["status"] == "READY"
    assert guidelines.embedded() == before


def metadata_of(guidelines: Guidelines, project: str) -> list[dict[str, Any]]:
    """Return the metadata of every entry in a project's serving build."""
    ctx = guidelines.api.installation.context(guidelines.tenant(project))
    serving = ctx.catalog.generations.serving(ctx.ref.id)
    assert serving is not None
    stored = ctx.store.entries.stored(serving.index_name, ctx.owner(serving))
    return [hit.fields["metadata"] for hit in stored]


def test_a_replacement_keeps_the_id_and_the_former_version_answers(
    guidelines: Guidelines,
) -> None:
    project = guidelines.project("replaced")
    id_ = guidelines.uploaded(project, "seals.md", SEALS)
    guidelines.sync(project)
    assert guidelines.uploaded(project, "boats.md", BOATS, replaces=id_) == id_
    waits = guidelines.document(project, id_)
    assert (waits["status"], waits["stage"], waits["answers"]) == ("PROCESSING", "queued", True)
    assert waits["fileName"] == "boats.md"
    assert guidelines.found(project, "seals") == {"Seals"}
    guidelines.sync(project)
    assert guidelines.found(project, "seals boats") == {"Boats"}
    assert guidelines.uploaded(project, "broken.pdf", PDF, replaces=id_) == id_
    guidelines.sync(project)
    failed = guidelines.document(project, id_)
    assert (failed["status"], failed["answers"], failed["chunkCount"]) == ("FAILED", True, 1)
    assert failed["errorMessage"].startswith("The file is damaged")
    assert guidelines.found(project, "boats") == {"Boats"}
    missing = guidelines.send(project, "a.md", b"other", replaces="0" * 32)
    assert kind(missing) == (404, "unknown-document")
    malformed = guidelines.send(project, "a.md", b"other", replaces="me")
    assert kind(malformed) == (422, "invalid-request")


def test_a_disabled_document_answers_no_more_and_costs_nothing_to_have_back(
    guidelines: Guidelines,
) -> None:
    project = guidelines.project("disabled")
    id_ = guidelines.uploaded(project, "seals.md", SEALS)
    guidelines.sync(project)
    path = f"/projects/{project}/guidelines/{id_}"
    off = guidelines.ask("PATCH", path, {"enabled": False})
    assert off.status_code == 200
    assert (off.json()["enabled"], off.json()["status"]) == (False, "READY")
    assert off.json()["answers"] is False
    assert guidelines.found(project, "seals") == set()
    guidelines.sync(project)
    before = guidelines.embedded()
    on = guidelines.ask("PATCH", path, {"enabled": True}).json()
    assert (on["enabled"], on["status"]) == (True, "PROCESSING")
    guidelines.sync(project)
    assert guidelines.document(project, id_)["status"] == "READY"
    assert guidelines.found(project, "seals") == {"Seals"}
    assert guidelines.embedded() == before
    assert kind(guidelines.ask("PATCH", path, {"enabled": "perhaps"}))[0] == 422


def test_a_document_that_failed_is_tried_again(guidelines: Guidelines) -> None:
    project = guidelines.project("failed")
    broken = guidelines.uploaded(project, "broken.pdf", PDF)
    guidelines.server.rejects = lambda text: "seals" in text
    refused = guidelines.uploaded(project, "seals.md", SEALS)
    guidelines.sync(project)
    failed = {
        document["_id"]: document["errorKind"]
        for document in guidelines.ask(
            "GET", f"/projects/{project}/guidelines", params={"status": "FAILED"}
        ).json()["documents"]
    }
    assert failed == {broken: "unreadable", refused: "text-rejected"}
    guidelines.server.rejects = lambda text: False
    again = guidelines.ask("POST", f"/projects/{project}/guidelines/{refused}/retry")
    assert (again.status_code, again.json()["status"]) == (202, "PROCESSING")
    assert again.json()["errorMessage"] is None
    resent = guidelines.send(project, "broken.pdf", PDF)
    assert (resent.status_code, resent.json()["document"]["_id"]) == (202, broken)
    guidelines.sync(project)
    assert guidelines.document(project, refused)["status"] == "READY"
    assert guidelines.document(project, broken)["status"] == "FAILED"
    nothing = guidelines.ask("POST", f"/projects/{project}/guidelines/{refused}/retry")
    assert (nothing.status_code, nothing.json()["status"]) == (200, "READY")


def test_the_stage_of_a_document_follows_what_the_chain_has_made(guidelines: Guidelines) -> None:
    project = guidelines.project("stages")
    sections = [f"# Part {n}\n\n" + f"Step {n} says what to do. " * 90 for n in range(12)]
    id_ = guidelines.uploaded(project, "manual.md", "\n\n".join(sections).encode())
    tenant = guidelines.tenant(project)
    seen: list[tuple[Any, ...]] = []

    def look() -> None:
        shown = guidelines.document(project, id_)
        seen.append((shown["stage"], shown["done"], shown["total"]))

    with guidelines.api.driver.locked(tenant) as ctx:
        for _ in stages_of(ctx, guidelines.api.driver.scanner):
            look()
    names = [stage for stage, _, _ in seen]
    assert names == ["parsing", "chunking", "embedding", "indexing", None]
    total = guidelines.document(project, id_)["chunkCount"]
    assert total > 5
    assert seen[2][1:] == (0, total)
    assert seen[3][1:] == (total, total)


def test_lists_come_in_pages_in_a_few_statements(guidelines: Guidelines) -> None:
    project = guidelines.project("long")
    path = f"/projects/{project}/guidelines"
    empty = guidelines.ask("GET", path).json()
    assert (empty["documents"], empty["next"], empty["ragGuidelines"]) == ([], None, True)
    assert empty["key"]["state"] == "usable"

    def listed(**parameters: Any) -> tuple[Any, int]:
        statements: list[str] = []

        def note(_c: Any, _k: Any, statement: str, *_: Any) -> None:
            statements.append(statement)

        engine = guidelines.api.driver.session.catalog.database._engine
        event.listen(engine, "before_cursor_execute", note)
        try:
            answer = guidelines.ask("GET", path, params=parameters)
        finally:
            event.remove(engine, "before_cursor_execute", note)
        assert answer.status_code == 200, answer.text
        return answer.json(), len(statements)

    for number in range(2):
        guidelines.uploaded(project, f"{number}.md", f"# {number}\n\nText {number}.".encode())
    _, few = listed()
    for number in range(2, 9):
        guidelines.uploaded(project, f"{number}.md", f"# {number}\n\nText {number}.".encode())
    found, many = listed()
    assert [document["fileName"] for document in found["documents"]] == [
        f"{number}.md" for number in reversed(range(9))
    ]
    assert many == few <= 10
    guidelines.sync(project)
    assert listed()[1] <= few
    first, _ = listed(limit=4)
    second, _ = listed(limit=4, after=first["next"])
    third, _ = listed(limit=4, after=second["next"])
    names = [d["fileName"] for page in (first, second, third) for d in page["documents"]]
    assert (names, third["next"]) == ([f"{number}.md" for number in reversed(range(9))], None)
    assert listed(status="READY", limit=100)[0]["documents"] == listed()[0]["documents"]
    assert listed(status="PROCESSING")[0]["documents"] == []
    for wrong in ({"after": "me"}, {"limit": 0}, {"status": "DISABLED"}):
        assert kind(guidelines.ask("GET", path, params=wrong))[0] == 422


def test_masked_credentials_are_shown_with_rule_and_line(guidelines: Guidelines) -> None:
    project = guidelines.project("withheld")
    planted = "-".join(["AKIA"[:4] + "IOSFODNN7PLANTED"])
    text = f"# Rules\n\nAsk first.\n\n# Access\n\naws_access_key_id = {planted}\n"
    id_ = guidelines.uploaded(project, "rules.md", text.encode())
    guidelines.sync(project)
    shown = guidelines.document(project, id_)
    chunks = guidelines.ask("GET", f"/projects/{project}/guidelines/{id_}/chunks")
    assert planted not in chunks.text
    assert (shown["dropped"], chunks.json()["dropped"]) == (0, [])
    assert chunks.json()["masked"] == [{"rule": "aws-access-key-id", "lines": [7]}]
    assert any("aws_access_key_id = ****" in chunk["text"] for chunk in chunks.json()["chunks"])


# -- what is told before the file is read


def head(guidelines: Guidelines, project: str, *more: str) -> bytes:
    lines = [
        f"POST /api/projects/{project}/guidelines/upload HTTP/1.1",
        "Host: service.example",
        f"Authorization: Bearer {guidelines.token()}",
        "Content-Length: 40000000",
        "Content-Type: multipart/form-data; boundary=bound",
        *more,
    ]
    return "\r\n".join([*lines, "", ""]).encode()


def answer_to(address: str, *sent: bytes) -> bytes:
    parts = urlsplit(address)
    received = b""
    with socket.create_connection((parts.hostname, parts.port), timeout=60) as connection:
        for piece in sent:
            connection.sendall(piece)
        while part := connection.recv(65_536):
            received += part
            if b"}" in received:
                break
    return received


@pytest.mark.parametrize("expect", [[], ["Expect: 100-continue"]])
def test_what_refuses_an_upload_is_told_to_who_sent_headers_only(
    guidelines: Guidelines, expect: list[str]
) -> None:
    lacking = guidelines.project("lacking", key=False)
    received = answer_to(guidelines.address, head(guidelines, lacking, *expect))
    assert received.startswith(b"HTTP/1.1 402"), received[:200]
    assert b"no-provider-key" in received
    assert f'"address":"/api/projects/{lacking}/keys/openai"'.encode() in received
    assert b'"provider":"openai"' in received
    poor = guidelines.project("poor", caps={"perMonth": 0})
    received = answer_to(guidelines.address, head(guidelines, poor, *expect))
    assert received.startswith(b"HTTP/1.1 402"), received[:200]
    assert b"cap-reached" in received
    received = answer_to(guidelines.address, head(guidelines, "never-made", *expect))
    assert received.startswith(b"HTTP/1.1 404"), received[:200]


def test_a_cap_is_reached_when_it_has_less_left_than_a_passage_costs(
    guidelines: Guidelines,
) -> None:
    project = guidelines.project("capped", caps={"perMonth": 1})
    catalog = guidelines.api.driver.session.catalog
    ref = catalog.tenants.get(guidelines.tenant(project)).ref
    catalog.usage.add(ref, "openai", "text-embedding-3-small", Usage(tokens=9, cost=0.999))
    assert guidelines.send(project, "seals.md", SEALS).status_code == 202
    catalog.usage.add(ref, "openai", "text-embedding-3-small", Usage(tokens=9, cost=0.0009))
    refused = guidelines.send(project, "boats.md", BOATS)
    assert kind(refused) == (402, "cap-reached")
    assert "raise the project's cap" in refused.json()["detail"]
    usage = guidelines.ask("GET", f"/projects/{project}/guidelines/usage?days=7").json()
    assert [(cap["name"], cap["reached"]) for cap in usage["caps"]] == [("perMonth", True)]


def test_a_cap_is_reached_while_documents_fail_for_it(guidelines: Guidelines) -> None:
    # The remaining budget covers a passage, but not a request with all of them.
    project = guidelines.project("stopped", caps={"perMonth": 0.001})
    many = b"".join(b"# Part %d\n\n%b\n" % (n, SEALS * 20) for n in range(30))
    assert guidelines.send(project, "many.md", many).status_code == 202
    guidelines.api.driver.sync(guidelines.tenant(project))
    [document] = guidelines.ask("GET", f"/projects/{project}/guidelines").json()["documents"]
    assert document["errorKind"] == "cap-reached"
    usage = guidelines.ask("GET", f"/projects/{project}/guidelines/usage?days=7").json()
    [cap] = usage["caps"]
    assert (cap["reached"], cap["spent"] < cap["dollars"]) == (True, True)


def test_while_guidelines_are_off_lists_and_deletions_work_and_nothing_is_embedded(
    guidelines: Guidelines,
) -> None:
    off = guidelines.token(organization="reef")
    assert guidelines.ask("PUT", "/organizations/reef", {"ragGuidelines": True}, token=off)
    guidelines.ask("PUT", "/projects/coral", {}, token=off)
    guidelines.ask("PUT", "/projects/coral/keys/openai", {"key": KEY}, token=off)
    sent = [
        guidelines.send("coral", f"{name}.md", text, token=off).json()["document"]["_id"]
        for name, text in (("seals", SEALS), ("boats", BOATS + b"In the reef.\n"))
    ]
    assert guidelines.ask("PUT", "/organizations/reef", {"ragGuidelines": False}, token=off)
    refused = guidelines.send("coral", "more.md", b"more", token=off)
    assert kind(refused) == (403, "feature-off")
    before = guidelines.embedded()
    guidelines.api.driver.sync("reef.coral")
    assert guidelines.embedded() == before
    page = guidelines.ask("GET", "/projects/coral/guidelines", token=off).json()
    assert page["ragGuidelines"] is False
    assert {document["errorKind"] for document in page["documents"]} == {"switched-off"}
    assert all(document["estimatedCost"] > 0 for document in page["documents"])
    usage = guidelines.ask("GET", "/projects/coral/guidelines/usage", token=off).json()
    waiting = usage["waiting"]
    assert (waiting["documents"], waiting["unmeasured"]) == (2, 0)
    assert waiting["cost"] == pytest.approx(waiting["tokens"] / 1e6)
    assert waiting["tokens"] == sum(document["tokenCount"] for document in page["documents"])
    gone = guidelines.ask("DELETE", f"/projects/coral/guidelines/{sent[0]}", token=off)
    assert gone.json()["outcome"] == "removed"
    guidelines.ask("PUT", "/organizations/reef", {"ragGuidelines": True}, token=off)
    guidelines.api.driver.sync("reef.coral")
    [left] = guidelines.ask("GET", "/projects/coral/guidelines", token=off).json()["documents"]
    assert (left["_id"], left["status"]) == (sent[1], "READY")


# -- what is told once the file is there


def test_what_cannot_be_taken_is_refused_with_its_reason(guidelines: Guidelines) -> None:
    project = guidelines.project("refusing")
    path = f"/api/projects/{project}/guidelines/upload"
    chief = {"Authorization": f"Bearer {guidelines.token()}"}

    def form(**given: Any) -> tuple[int, str]:
        return kind(guidelines.client.post(path, headers=chief, **given))

    picture = guidelines.send(project, "picture.md", b"\x89PNG\r\n\x1a\n000")
    assert kind(picture) == (415, "unsupported-file")
    assert "PNG" in picture.json()["detail"]
    html = guidelines.send(project, "page.html", b"<!doctype html><html><body>x</body></html>")
    assert kind(html) == (415, "unsupported-file")
    for nothing in (b"", b"  \n"):
        assert kind(guidelines.send(project, "empty.md", nothing)) == (422, "upload-refused")
    assert kind(guidelines.send(project, "/", SEALS)) == (422, "upload-refused")
    assert form(json={"file": "x"}) == (422, "upload-refused")
    assert form(files={"other": ("a.md", SEALS)}) == (422, "upload-refused")
    several = [("file", ("a.md", SEALS)), ("file", ("b.md", BOATS))]
    assert form(files=several) == (422, "upload-refused")
    received = answer_to(
        guidelines.address,
        head(guidelines, project).replace(b"40000000", b"60000000"),
    )
    assert received.startswith(b"HTTP/1.1 413"), received[:200]
    assert b":too-large" in received
    assert guidelines.ask("GET", f"/projects/{project}/guidelines").json()["documents"] == []
    assert kept_files(guidelines, project) == []


def test_a_full_project_takes_replacements_and_duplicates_only(guidelines: Guidelines) -> None:
    project = guidelines.project("full")
    id_ = guidelines.uploaded(project, "seals.md", SEALS)
    database = guidelines.api.driver.session.catalog.database
    tenant = guidelines.tenant(project)
    with database.begin() as connection:
        [row] = connection.execute(uploads.select().where(uploads.c.tenant == tenant)).mappings()
        more = [
            {**row, "document_id": f"{n:032x}", "path": f"{n:016x}", "content_sha256": f"{n:064x}"}
            for n in range(999)
        ]
        connection.execute(uploads.insert(), more)
    assert kind(guidelines.send(project, "boats.md", BOATS)) == (413, "project-full")
    assert guidelines.send(project, "again.md", SEALS).status_code == 200
    assert guidelines.uploaded(project, "boats.md", BOATS, replaces=id_) == id_
    assert len(kept_files(guidelines, project)) == 1
    with database.begin() as connection:
        connection.execute(
            uploads.delete().where(uploads.c.tenant == tenant, uploads.c.document_id != id_)
        )
        connection.execute(
            uploads.update().where(uploads.c.tenant == tenant).values(size=5 * 1024**3)
        )
    assert kind(guidelines.send(project, "seals.md", SEALS)) == (413, "project-full")
    assert guidelines.uploaded(project, "seals.md", SEALS, replaces=id_) == id_


def test_slow_senders_and_too_many_at_once_are_sent_away(guidelines: Guidelines) -> None:
    project = guidelines.project("busy")
    settings = ServiceSettings(
        jwt=SETTINGS.jwt, rate=SETTINGS.rate, attempts=SETTINGS.attempts, uploads=1, wait=0
    )
    backend = guidelines.api.another(settings)
    backend.file_receiver._slack_seconds = 1.0
    opening = b'--bound\r\nContent-Disposition: form-data; name="file"; filename="a.md"\r\n\r\n'
    with running(backend) as address:
        parts = urlsplit(address)
        with socket.create_connection((parts.hostname, parts.port), timeout=60) as first:
            first.sendall(head(guidelines, project, "Expect: 100-continue"))
            assert first.recv(100).startswith(b"HTTP/1.1 100")
            refused = answer_to(address, head(guidelines, project, "Expect: 100-continue"))
            assert refused.startswith(b"HTTP/1.1 503"), refused[:200]
            first.sendall(opening)
            received = b""
            while part := first.recv(65_536):
                received += part
                if b"}" in received:
                    break
    assert received.startswith(b"HTTP/1.1 408"), received[:200]


def test_a_lost_file_is_told(guidelines: Guidelines) -> None:
    project = guidelines.project("lost")
    id_ = guidelines.uploaded(project, "seals.md", SEALS)
    session = guidelines.api.driver.session
    ref: TenantRef = session.catalog.tenants.get(guidelines.tenant(project)).ref
    [blob] = open_blobs(session.settings).tenant(ref.id, ref.incarnation).all()
    open_blobs(session.settings).tenant(ref.id, ref.incarnation).delete(blob.sha256)
    said = guidelines.ask("GET", f"/projects/{project}/guidelines/{id_}/file")
    assert kind(said) == (404, "file-lost")
    guidelines.sync(project)
    assert guidelines.document(project, id_)["errorKind"] == "lost"


# -- usage


def test_usage_is_summed_by_day_model_month_and_organization(guidelines: Guidelines) -> None:
    token = guidelines.token(organization="isle")
    guidelines.ask("PUT", "/organizations/isle", {"ragGuidelines": True}, token=token)
    guidelines.ask("PUT", "/organizations/isle/keys/openai", {"key": KEY}, token=token)
    for project in ("north", "south"):
        guidelines.ask("PUT", f"/projects/{project}", {"caps": {"perDay": 2}}, token=token)
        text = SEALS + f"In the {project}.\n".encode()
        assert guidelines.send(project, "seals.md", text, token=token).status_code == 202
        guidelines.api.driver.sync(f"isle.{project}")
    said = guidelines.ask("GET", "/projects/north/guidelines/usage?days=7", token=token)
    assert said.status_code == 200, said.text
    usage = said.json()
    [day] = usage["days"]
    assert (day["provider"], day["model"]) == ("openai", "text-embedding-3-small")
    assert day["used"] == usage["month"]
    assert usage["month"]["tokens"] >= 1000
    assert usage["organizationMonth"]["tokens"] > usage["month"]["tokens"]
    [cap] = usage["caps"]
    assert (cap["name"], cap["dollars"], cap["reached"]) == ("perDay", 2.0, False)
    assert cap["spent"] == pytest.approx(usage["month"]["cost"])
    assert usage["waiting"] == {"documents": 0, "tokens": 0, "cost": 0.0, "unmeasured": 0}
    wrong = guidelines.ask("GET", "/projects/north/guidelines/usage?days=0", token=token)
    assert kind(wrong) == (422, "invalid-request")


# -- files of every kind, and several at once


def test_every_file_ends_ready_or_failed_with_a_reason_and_by_its_content(
    guidelines: Guidelines,
) -> None:
    project = guidelines.project("kinds")
    page = [("body", "Rollbacks are approved by a duty manager.")]
    files = {
        "handbook.md": (pdfs.laid_out([page]), "application/pdf", "READY", None),
        "locked.pdf": (
            pdfs.laid_out([page], password="opensesame"),
            *("application/pdf", "FAILED", "encrypted"),
        ),
        "broken.pdf": (PDF, "application/pdf", "FAILED", "unreadable"),
        "../../etc/pass\u202ewd\x07.md": (SEALS, "text/markdown", "READY", None),
    }
    sent = {name: guidelines.send(project, name, file[0]) for name, file in files.items()}
    refused = {name: said.text for name, said in sent.items() if said.status_code != 202}
    assert refused == {}
    guidelines.sync(project)
    for name, (_, mime_type, status, reason) in files.items():
        shown = guidelines.document(project, sent[name].json()["document"]["_id"])
        assert (shown["mimeType"], shown["status"]) == (mime_type, status), name
        assert shown["errorKind"] == reason, name
        assert bool(shown["errorMessage"]) == (status == "FAILED")
        assert "/" not in shown["fileName"]
        assert shown["fileName"].isprintable()
    chunks = guidelines.ask(
        "GET",
        f"/projects/{project}/guidelines/{sent['handbook.md'].json()['document']['_id']}/chunks",
    ).json()["chunks"]
    assert [(chunk["page"], "duty manager" in chunk["text"]) for chunk in chunks] == [(1, True)]


def test_of_equal_uploads_at_once_one_is_stored(guidelines: Guidelines) -> None:
    project = guidelines.project("twice")
    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(lambda n: guidelines.send(project, f"{n}.md", SEALS), range(4)))
    assert sorted(answer.status_code for answer in answers) == [200, 200, 200, 202]
    assert len({answer.json()["document"]["_id"] for answer in answers}) == 1
    assert len(kept_files(guidelines, project)) == 1


def test_a_document_that_is_deleted_in_every_stage_leaves_nothing(guidelines: Guidelines) -> None:
    project = guidelines.project("deleted")
    tenant = guidelines.tenant(project)
    for after in range(4):
        text = SEALS + f"After stage {after}.\n".encode()
        id_ = guidelines.uploaded(project, "seals.md", text)
        with guidelines.api.driver.locked(tenant) as ctx:
            for stage, _ in enumerate(stages_of(ctx, guidelines.api.driver.scanner)):
                if stage == after:
                    gone = guidelines.ask("DELETE", f"/projects/{project}/guidelines/{id_}")
                    assert gone.json()["outcome"] == "removed"
        assert guidelines.found(project, "seals") == set()
        assert kept_files(guidelines, project) == []
    guidelines.sync(project)
    assert metadata_of(guidelines, project) == []
    assert guidelines.ask("GET", f"/projects/{project}/guidelines").json()["documents"] == []


# -- failures of providers


def openai_vectors(numbers: Callable[[int], list[float]], left_out: int = 0) -> Spoilt:
    """Return a fault: OpenAI's response has these vectors, without the last ones."""

    def change(answer: dict[str, Any]) -> dict[str, Any]:
        rows = [
            {**row, "embedding": base64.b64encode(array("f", numbers(at)).tobytes()).decode()}
            for at, row in enumerate(answer["data"])
        ]
        return {**answer, "data": rows[left_out:]}

    return Spoilt(change)


def gemini_vectors(numbers: Callable[[int], list[float]], left_out: int = 0) -> Spoilt:
    """Return a fault: Gemini's response has these vectors, without the first ones."""

    def change(answer: dict[str, Any]) -> dict[str, Any]:
        rows = [{"values": numbers(at)} for at, _ in enumerate(answer["embeddings"])]
        return {**answer, "embeddings": rows[left_out:]}

    return Spoilt(change)


def good(at: int) -> list[float]:
    return [1.0] * 1536


def short(at: int) -> list[float]:
    return [1.0] * 700


def not_finite(at: int) -> list[float]:
    return [float("nan")] * 1536


def zeros(at: int) -> list[float]:
    return [0.0] * 1536


# The kind, the operator's text, the problem of a search, and the reason of a context.
FAULTS: Mapping[str, tuple[Mapping[str, Fault], str, str, str, str]] = {
    "key": (
        {
            "openai": Status(401, reason="invalid_api_key"),
            "gemini": Status(403, reason="PERMISSION_DENIED"),
        },
        *("key-refused", "the key for", "embedder-refused", "no-key"),
    ),
    "model": (
        {"openai": Status(404, reason="model_not_found"), "gemini": Status(404)},
        *("model-refused", "no such model", "embedder-refused", "embedder-unavailable"),
    ),
    "quota": (
        {"openai": Status(429, reason="insufficient_quota"), "gemini": Status(402)},
        *("quota-exhausted", "the quota for", "embedder-refused", "embedder-unavailable"),
    ),
    "redirect": (
        {"openai": Status(307), "gemini": Status(307)},
        *("address-refused", "redirects", "embedder-refused", "embedder-unavailable"),
    ),
    "other": (
        {"openai": Status(405), "gemini": Status(405)},
        *("request-refused", "refuses the request", "embedder-refused", "embedder-unavailable"),
    ),
    "count": (
        {"openai": openai_vectors(good, 1), "gemini": gemini_vectors(good, 1)},
        *("wrong-vectors", " texts", "embedder-failed", "embedder-unavailable"),
    ),
    "length": (
        {"openai": openai_vectors(short), "gemini": gemini_vectors(short)},
        *("wrong-vectors", "dimensions", "embedder-failed", "embedder-unavailable"),
    ),
    "nan": (
        {"openai": openai_vectors(not_finite), "gemini": gemini_vectors(not_finite)},
        *("bad-response", "not finite", "embedder-failed", "embedder-unavailable"),
    ),
    "zeros": (
        {"openai": openai_vectors(zeros), "gemini": gemini_vectors(zeros)},
        *("bad-response", "a vector of zeros", "embedder-failed", "embedder-unavailable"),
    ),
    "no json": (
        {provider: Spoilt(lambda answer: b"<html>") for provider in ("openai", "gemini")},
        *("bad-response", "", "embedder-failed", "embedder-unavailable"),
    ),
    "limits": (
        {p: Status(429, retry_after="120") for p in ("openai", "gemini")},
        *("provider-limits", "limits requests", "embedder-unavailable", "embedder-unavailable"),
    ),
    "outage": (
        {p: Status(503, retry_after="120") for p in ("openai", "gemini")},
        *("provider-unavailable", "is unavailable", "embedder-unavailable", "embedder-unavailable"),
    ),
}


@pytest.mark.long
@pytest.mark.parametrize("provider", ["openai", "gemini"])
@pytest.mark.parametrize("fault", FAULTS)
def test_a_failure_of_a_provider_is_named_the_same_at_every_surface(
    guidelines: Guidelines, provider: str, fault: str
) -> None:
    faults, failure, operators, problem, reason = FAULTS[fault]
    words = WORDS[failure]
    project = guidelines.project(f"fault-{provider}", key=False, provider=provider)
    guidelines.ask("PUT", f"/projects/{project}/keys/{provider}", {"key": KEY})
    guidelines.uploaded(project, "seals.md", SEALS)
    guidelines.sync(project)
    guidelines.server.always = faults[provider]
    try:
        failed = guidelines.uploaded(project, "boats.md", BOATS)
        guidelines.sync(project)
        asked = guidelines.client.post(
            "/rag/query",
            json={"query": "seals", "tenant": guidelines.tenant(project)},
            headers={"Authorization": f"Bearer {guidelines.token()}"},
        )
        context = guidelines.ask(
            "POST", f"/projects/{project}/guidelines/context", {"task": f"seals {fault}"}
        ).json()
        tested = guidelines.ask("POST", f"/projects/{project}/keys/{provider}/test").json()
    finally:
        guidelines.server.always = None
    shown = guidelines.document(project, failed)
    assert (shown["errorKind"], shown["errorMessage"]) == (failure, words.text)
    assert shown["canRetry"] is True
    [row] = [
        row
        for row in guidelines.api.driver.session.catalog.documents.all(guidelines.tenant(project))
        if row.document_id == failed
    ]
    assert operators in row.error_message
    assert kind(asked)[1] == problem
    assert asked.json()["detail"] == words.text_of_request
    assert (context["reason"], context["detail"]) == (reason, words.text_of_request)
    assert not tested["worked"]
    assert operators in tested["reason"]


def test_an_address_that_is_not_allowed_is_named_at_every_surface(guidelines: Guidelines) -> None:
    path = Path(guidelines.api.installation.home) / "tenants.yaml"
    before = path.read_text()
    path.write_text(before.replace(guidelines.server.url, "http://10.1.2.3:9/v1"))
    try:
        project = guidelines.project("address")
    finally:
        path.write_text(before)
    failed = guidelines.uploaded(project, "boats.md", BOATS)
    guidelines.sync(project)
    shown = guidelines.document(project, failed)
    assert shown["errorKind"] == "address-refused"
    assert shown["errorMessage"] == WORDS["address-refused"].text
    tested = guidelines.ask("POST", f"/projects/{project}/keys/openai/test").json()
    assert "not encrypted: 10.1.2.3:9" in tested["reason"]
    context = guidelines.ask(
        "POST", f"/projects/{project}/guidelines/context", {"task": "boats"}
    ).json()
    assert (context["reason"], "failed" in context["detail"]) == ("documents-failed", True)


def test_documents_under_way_and_failed_ones_are_a_reason_of_their_own(
    guidelines: Guidelines,
) -> None:
    project = guidelines.project("reasons")

    def reason() -> str:
        path = f"/projects/{project}/guidelines/context"
        return str(guidelines.ask("POST", path, {"task": "boats"}).json()["reason"])

    assert reason() == "no-documents"
    guidelines.uploaded(project, "broken.pdf", PDF)
    assert reason() == "documents-processing"
    guidelines.sync(project)
    assert reason() == "documents-failed"
    [document] = guidelines.ask("GET", f"/projects/{project}/guidelines").json()["documents"]
    assert (document["errorKind"], document["canRetry"]) == ("unreadable", False)


@pytest.mark.parametrize("name", ["old.doc", "picture.png"])
def test_a_format_that_is_not_accepted_names_those_that_are(
    guidelines: Guidelines, name: str
) -> None:
    project = guidelines.project("formats")
    content = {"old.doc": OLE2, "picture.png": b"\x89PNG\r\n\x1a\n" + bytes(200)}[name]
    said = guidelines.send(project, name, content)
    assert kind(said) == (415, "unsupported-file")
    detail = said.json()["detail"]
    assert all(suffix in detail for suffix in (".pdf", ".docx", ".md"))
    assert not re.search(r"(?i)pptx|xlsx|parser\.", detail)


def test_what_is_missing_is_named_without_the_tenant(guidelines: Guidelines) -> None:
    project = guidelines.project("missing")
    unknown = guidelines.ask("GET", "/projects/never-made/guidelines")
    assert kind(unknown) == (404, "unknown-project")
    assert "the token's organization has no project with this id" in unknown.json()["detail"]
    path = f"/projects/{project}/guidelines/{'0' * 32}"
    for method, body in (("GET", None), ("PATCH", {"enabled": False})):
        said = guidelines.ask(method, path, body)
        assert kind(said) == (404, "unknown-document")
        assert guidelines.tenant(project) not in said.text


def test_a_service_token_of_an_organization_covers_its_projects(guidelines: Guidelines) -> None:
    command = guidelines.api.installation.command
    assert "there is no organization" in command("tokens", "create", "nobody", "--organization").err
    made = command("tokens", "create", "harbour", "--organization", "--role", "admin", "--json")
    assert made.code == 0, made.err
    token = made.json["token"]
    # The token creates projects, and covers later ones, but not other organizations.
    assert guidelines.ask("PUT", "/projects/by-token", {}, token=token).status_code == 201
    later = guidelines.project("later")
    assert guidelines.ask("GET", f"/projects/{later}", token=token).status_code == 200
    assert guidelines.ask("GET", "/organizations/harbour", token=token).status_code == 200
    assert kind(guidelines.ask("GET", "/organizations/quay", token=token)) == (403, "forbidden")
    assert kind(guidelines.ask("GET", "/projects/crane", token=token))[0] == 404
    listed = command("tokens", "list", "harbour", "--organization", "--json").json["tokens"]
    assert [one["token_id"] for one in listed] == [made.json["token_id"]]
    wrong = command("tokens", "revoke", "harbour", "unknown", "--organization")
    assert "organization 'harbour' has no token with this id" in wrong.err
    command("tokens", "revoke", "harbour", made.json["token_id"], "--organization")
    assert kind(guidelines.ask("GET", f"/projects/{later}", token=token))[0] == 401
