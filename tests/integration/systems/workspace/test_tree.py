"""The tree of a workspace over HTTP: who finds which pages, before and after entries move."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import pytest

from rag_assets.systems.workspace.page_table import PageLists
from tests.back_ends import EACH_BACK_END
from tests.driving import Driver, tenant_named_after
from tests.installation import Installation
from tests.integration.systems.workspace.marked_tree import (
    ADMIN,
    Person,
    Workspace,
    marks_in,
    workspace_of,
)

pytestmark = EACH_BACK_END
ADA = Person("ada")
GUEST = Person("gil", "guest", ("partners",))


@pytest.fixture
def workspace(
    request: pytest.FixtureRequest, shared_installation: Installation, driver: Driver
) -> Iterator[Workspace]:
    with workspace_of(shared_installation, driver, tenant_named_after(request)) as made:
        yield made


def found(workspace: Workspace, by: Person, **body: Any) -> set[str]:
    """Return the marks that a person finds, which must be the same by words and by vectors."""
    asked = "marka markb markc markd"
    by_words, by_vectors = (
        marks_in(workspace.ask(by, asked, mode=mode, **body)) for mode in ("text", "knn")
    )
    assert by_words == by_vectors
    return by_words


def entry_scopes(workspace: Workspace, installation: Installation) -> dict[str, str]:
    ctx = installation.context(workspace.id)
    serving = ctx.catalog.generations.serving(workspace.id)
    assert serving is not None
    return {
        hit.fields["page_uuid"]: hit.fields["access_scope"]
        for hit in ctx.store.entries.stored(serving.index_name, ctx.owner(serving))
    }


def test_a_move_holds_with_its_answer_and_entries_follow(
    workspace: Workspace, shared_installation: Installation
) -> None:
    workspace.put("board", inherit=False, read=["bob"])
    workspace.put("a")
    workspace.put("b", parent="a")
    workspace.push({"a": "alpha marka", "b": "beta markb"})
    workspace.sync()
    # As a guest he may not read the entries of the former scope.
    bob, guest = Person("bob"), Person("bob", "guest")
    assert found(workspace, ADA) == found(workspace, bob) == {"marka", "markb"}
    assert found(workspace, guest) == set()
    assert workspace.put("a", parent="board") == {"scope": "page:board", "documents": 2}
    for _ in ("before entries follow", "and afterwards"):
        assert found(workspace, ADA) == set()
        assert found(workspace, bob) == found(workspace, guest) == {"marka", "markb"}
        workspace.sync()
    assert found(workspace, guest) == {"marka", "markb"}
    assert entry_scopes(workspace, shared_installation) == {"a": "page:board", "b": "page:board"}
    workspace.put("a")
    for _ in ("before entries follow", "and afterwards"):
        assert found(workspace, ADA) == {"marka", "markb"}
        workspace.sync()
    assert set(entry_scopes(workspace, shared_installation).values()) == {"page:root"}


def test_what_moved_away_takes_no_place_of_what_may_be_read(workspace: Workspace) -> None:
    workspace.put("many")
    workspace.put("one")
    many = {f"m{n}": f"valve valve valve n{n}" for n in range(150)}
    workspace.push(many, kind="comment", on="many")
    few = {"one": "one valve among many words that are of no use here marka"}
    workspace.push(few, kind="comment", on="one")
    workspace.sync()
    assert not marks_in(workspace.ask(ADA, "valve", top_k=5))
    workspace.put("many", inherit=False, read=["bob"])
    for mode in ("text", "knn", "hybrid"):
        assert marks_in(workspace.ask(ADA, "valve", top_k=5, mode=mode)) == {"marka"}, mode


def test_guests_read_only_what_names_them(workspace: Workspace) -> None:
    workspace.put("a")
    workspace.put("b", read=["group:partners"])
    workspace.put("c", read=["gil"], inherit=False)
    workspace.push({"a": "alpha marka", "b": "beta markb", "c": "gamma markc"})
    workspace.push({"t": "template markd"}, kind="template")
    workspace.sync()
    assert found(workspace, ADA) == {"marka", "markb", "markd"}
    assert found(workspace, ADMIN) == {"marka", "markb", "markd"}
    assert found(workspace, GUEST) == {"markb", "markc"}
    assert found(workspace, Person("eve", "guest")) == set()
    listed = workspace.send("GET", "/rag/documents", by=GUEST).json()["documents"]
    assert {one["title"] for one in listed} == {"beta markb", "gamma markc"}
    # Guests have only their own names: a guest called members is not a member.
    refused = workspace.send("GET", "/rag/documents", by=Person("members", "guest"))
    assert refused.status_code == 401


def test_numbers_and_events_tell_of_what_is_read_alone(workspace: Workspace) -> None:
    workspace.put("a", read=["group:partners"])
    workspace.put("b", inherit=False, read=["bob"])
    workspace.push({"a": "alpha marka", "b": "beta markb"})
    workspace.sync()
    workspace.push({"b": "beta markb changed"})

    def chunks(by: Person) -> tuple[int, int]:
        status = workspace.send("GET", "/rag/status", by=by).json()
        return status["chunks"], status["queue_depth"]

    assert chunks(ADMIN) == (2, 1)
    assert chunks(ADA) == (1, 0)
    assert chunks(Person("bob")) == (2, 1)
    assert chunks(GUEST) == (1, 0)
    assert chunks(Person("eve", "guest")) == (0, 0)
    events = workspace.send("GET", "/rag/events", by=ADMIN, kind="document_indexed").json()
    [event] = events["events"]
    assert event["payload"]["uri"].endswith("/a")
    workspace.send("DELETE", "/rag/tree/b", by=ADMIN)
    assert "/b" not in workspace.send("GET", "/rag/events", by=ADMIN).text


def test_what_is_out_leaves_the_index_and_comes_back_without_an_embedding(
    workspace: Workspace, shared_installation: Installation
) -> None:
    workspace.put("db", kind="database")
    workspace.push({"r1": "row marka", "r2": "row markb"}, kind="db_row", on="db")
    workspace.sync()
    for out in ({"archived": True}, {"ai": "off"}):
        assert workspace.put("db", kind="database", **out)["documents"] == 2
        assert found(workspace, ADA) == set()
        workspace.sync()
        assert entry_scopes(workspace, shared_installation) == {}
        # Records pushed meanwhile wait, and are sent to nobody.
        workspace.push({"r2": "row markb anew"}, kind="db_row", on="db")
        assert workspace.sync()["embedded"] == 0
        status = workspace.send("GET", "/rag/status", by=ADMIN).json()
        assert (status["chunks"], status["queue_depth"]) == (0, 0)
        workspace.push({"r2": "row markb"}, kind="db_row", on="db")
        assert workspace.sync()["embedded"] == 0
        workspace.put("db", kind="database")
        assert workspace.sync()["embedded"] == 0
        assert found(workspace, ADA) == {"marka", "markb"}


def test_within_is_these_pages_and_all_below(workspace: Workspace) -> None:
    workspace.put("a")
    workspace.put("b", parent="a")
    workspace.put("c", parent="b", inherit=False, read=["bob"])
    workspace.put("d")
    workspace.push({name: f"text mark{name}" for name in "abcd"})
    workspace.sync()

    def within(by: Person, *pages: str) -> set[str]:
        return found(workspace, by, filters={"within": pages})

    assert within(ADA, "a") == {"marka", "markb"}
    assert within(ADA, "b", "d") == {"markb", "markd"}
    assert within(Person("bob"), "b") == {"markb", "markc"}
    assert within(ADA, "c") == within(ADA, "unknown") == set()
    assert within(ADA, "root") == {"marka", "markb", "markd"}
    # A moved page takes its subpages with it.
    workspace.put("d", parent="a")
    assert within(ADA, "a") == {"marka", "markb", "markd"}
    call = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {
            "name": "rag_search",
            "arguments": {"query": "marka markb markd", "within": ["b"]},
        },
    }
    answer = workspace.send("POST", "/mcp", call, by=ADA).text
    assert "markb" in answer
    assert "marka" not in answer
    assert "markd" not in answer


def test_too_many_pages_are_refused_and_those_that_are_not_read_are_not_counted(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rag_assets.search.plan.MAX_PAGES", 2)
    workspace.put("a")
    for uuid in ("b", "c"):
        workspace.put(uuid, parent="a", inherit=False, read=["bob"])
    body = {"query": "valve", "filters": {"within": ["a"]}}
    assert workspace.send("POST", "/rag/query", body, by=ADA).status_code == 200
    refused = workspace.send("POST", "/rag/query", body, by=Person("bob"))
    assert refused.status_code == 422
    assert "within" in refused.text


def test_requests_are_refused_where_they_must_be(workspace: Workspace) -> None:
    for by in (ADA, GUEST):
        for method, path in (
            ("PUT", "/rag/tree/a"),
            ("DELETE", "/rag/tree/a"),
            ("GET", "/rag/access"),
        ):
            body = {} if method == "PUT" else None
            asked = {"page_uuid": "a", "principal": "ada"} if method == "GET" else {}
            answer = workspace.send(method, path, body, by=by, **asked)
            assert answer.status_code == 403, (method, by)
    for path, body in (
        ("a", {"parent": "a"}),
        ("a", {"kind": "folder"}),
        ("a", {"read": ["guests"]}),
        ("a", {"read": [""]}),
        ("a", {"read": ["ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"]}),
        ("a", {"ai": "maybe"}),
        ("a", {"unknown": 1}),
        ("root", {"parent": "a"}),
        ("root", {"archived": True, "inherit": False}),
        ("%20", {}),
        ("a b", {}),
    ):
        answer = workspace.send("PUT", f"/rag/tree/{path}", body, by=ADMIN)
        assert answer.status_code == 422, (path, body, answer.text)
        assert "ghp_" not in answer.text
    assert workspace.send("DELETE", "/rag/tree/root", by=ADMIN).status_code == 422
    assert [
        page.uuid for page, _ in PageLists(workspace.catalog.database).list_all(workspace.id)
    ] == []


def test_an_admin_is_told_who_reads_a_page_and_why(workspace: Workspace) -> None:
    workspace.put("a", read=["group:partners"])
    workspace.put("b", parent="a", inherit=False, read=["bob"])
    workspace.put("c", parent="b", ai="off")

    def read_access(uuid: str, *principals: str) -> dict[str, Any]:
        asked = {"page_uuid": uuid, "principal": list(principals)}
        answer = workspace.send("GET", "/rag/access", by=ADMIN, **asked)
        assert answer.status_code == 200, answer.text
        verdict: dict[str, Any] = answer.json()
        return verdict

    assert read_access("a", "ada", "members") | {"reason": ""} == {
        "page_uuid": "a",
        "principals": ["ada", "members"],
        "readable": True,
        "scope": "page:a",
        "by_page": "root",
        "by_principal": "members",
        "reason": "",
    }
    assert read_access("a", "group:partners")["by_page"] == "a"
    assert not read_access("b", "group:partners", "members")["readable"]
    assert read_access("c", "bob")["by_page"] == "c"
    assert not read_access("unknown", "ada")["readable"]


def test_pages_and_databases_are_indexed_again_by_their_ids(workspace: Workspace) -> None:
    workspace.put("a")
    workspace.push({"a": "alpha marka"})
    workspace.push({"c1": "comment markb"}, kind="comment", on="a")
    workspace.push({"b": "beta markc"}, kind="db_row", on="db")
    workspace.sync()

    def reindexed(**body: str) -> Any:
        return workspace.send("POST", "/rag/reindex", body, by=ADMIN)

    assert reindexed(scope="page", id="a").json() == {"documents": 2}
    assert reindexed(scope="database", id="db").json() == {"documents": 1}
    assert reindexed(scope="workspace").json() == {"documents": 3}
    assert reindexed(scope="page", id="unknown").status_code == 404
    assert reindexed(scope="database", id="a").status_code == 404


def test_commands_do_what_the_endpoints_do(
    workspace: Workspace, shared_installation: Installation
) -> None:
    run = shared_installation.command
    put = run("workspace", "tree", "put", workspace.id, "a", "--read", "ada", "--no-inherit")
    assert put.code == 0, put.err
    assert run("workspace", "tree", "put", workspace.id, "b", "--parent", "a").code == 0
    shown = run("workspace", "tree", "show", workspace.id)
    assert shown.out.splitlines() == [
        "root  read by members",
        "  a  read by ada alone",
        "    b",
    ]
    answer_body = run("workspace", "access", workspace.id, "b", "ada", "--json")
    assert json.loads(answer_body.out)["by_page"] == "a"
    cycle = run("workspace", "tree", "put", workspace.id, "a", "--parent", "b")
    assert cycle.code != 0
    assert "below itself" in cycle.err
    assert run("workspace", "tree", "delete", workspace.id, "a").code != 0
    assert run("workspace", "tree", "delete", workspace.id, "a", "--yes").code == 0
    assert run("workspace", "tree", "show", workspace.id).out == "root  read by members\n"


def test_what_became_of_a_record_of_a_page_that_is_out_is_told_to_its_readers(
    workspace: Workspace,
) -> None:
    workspace.put("top", inherit=False, read=["ada"])
    workspace.put("page", parent="top")
    workspace.put("bobs", parent="page", inherit=False, read=["bob"])
    workspace.push({"page": "alpha", "bobs": "beta"})
    workspace.push({"c": "a comment"}, kind="comment", on="page")
    workspace.sync()
    bob = Person("bob")

    def read_record(by: Person, path: str) -> Any:
        answer = workspace.send("GET", f"/rag/records/{path}", by=by)
        if answer.status_code == 404:
            return None
        return answer.json()["status"], answer.json()["reason"], answer.json()["chunks"]

    for out, why in (
        ({"archived": True}, "Its page is archived."),
        ({"ai": "off"}, "Its page is excluded from searches."),
    ):
        workspace.put("top", inherit=False, read=["ada"], **out)
        workspace.push({"never": "not listed"}, kind="comment", on="page")
        for _ in ("before the sync", "and after it"):
            for path in ("page/page", "comment/c", "comment/never"):
                assert read_record(ADA, path) == ("excluded", why, [])
                assert read_record(ADMIN, path) is None
                assert read_record(bob, path) is None
            assert read_record(bob, "page/bobs") == ("excluded", why, [])
            assert read_record(ADA, "page/bobs") is None
            workspace.sync()
        workspace.send("DELETE", "/rag/records/comment/never", by=ADMIN)
    # Nobody reads an archived page below an unknown one.
    workspace.put("page", parent="unknown", archived=True)
    assert read_record(ADA, "page/page") is None
    assert read_record(bob, "page/bobs") is None


def test_access_tells_what_is_read_as_a_member(workspace: Workspace) -> None:
    workspace.put("a")

    def asked(*names: str) -> dict[str, Any]:
        answer = workspace.send("GET", "/rag/access", by=ADMIN, page_uuid="a", principal=[*names])
        answer_body: dict[str, Any] = answer.json()
        return answer_body

    assert asked("ada", "members")["readable"]
    alone = asked("ada")
    assert not alone["readable"]
    assert "principal=members" in alone["reason"]
    workspace.put("a", inherit=False, read=["bob"])
    assert "members" not in asked("ada")["reason"]


def test_records_hang_on_nothing_that_the_tree_cannot_have(workspace: Workspace) -> None:
    for uuid in ("-dash", "a b", "a/b", "\u00fc", "x" * 129):
        bodies = {
            "page": ({"title": "T"}, uuid, "source_id"),
            "comment": ({"page_uuid": uuid, "text": "x"}, "c", "page_uuid"),
            "file": ({"page_uuid": uuid, "name": "n.md"}, "f", "page_uuid"),
            "db_row": ({"database_uuid": uuid, "values": []}, "r", "database_uuid"),
            "block": (
                {"page_uuid": uuid, "block": {"block_id": "b", "type": "p"}},
                "b",
                "page_uuid",
            ),
        }
        for kind, (body, id_, field) in bodies.items():
            path = f"/rag/records/{kind}/{quote(id_, safe='')}"
            refused = workspace.send("PUT", path, body, by=ADMIN)
            assert refused.status_code == 422, (kind, refused.text)
            assert [one["field"] for one in refused.json()["errors"]] == [field]
            line = {"op": "put", "type": kind, "id": id_, **body}
            answer = workspace.send("POST", "/rag/records", by=ADMIN, lines=[line])
            assert [one["outcome"] for one in answer.json()["lines"]] == ["invalid"]


def test_hits_have_the_titles_of_their_pages_that_the_caller_reads(workspace: Workspace) -> None:
    workspace.put("team")
    workspace.put("board", parent="team", inherit=False, read=["bob"])
    workspace.put("open", parent="board", read=["ada"])
    workspace.put("deals", parent="open", kind="database")
    workspace.push({"team": "Team", "board": "Board", "open": "Open"})
    workspace.push({"c": "comment marka"}, kind="comment", on="open")
    workspace.push({"r": "row marka"}, kind="db_row", on="deals")
    workspace.sync()

    def shown(by: Person, query: str) -> dict[str, tuple[str | None, list[str]]]:
        hits = workspace.ask(by, query)
        return {hit["source_id"]: (hit["title"], hit["breadcrumb"]) for hit in hits}

    ada, bob = Person("ada"), Person("bob")
    above = ["Team", "Open"]
    assert shown(ada, "marka") == {"c": ("Open", above), "r": ("row marka", above)}
    above = ["Team", "Board", "Open"]
    assert shown(bob, "marka") == {"c": ("Open", above), "r": ("row marka", above)}
    assert shown(bob, "board") == {"board": ("Board", ["Team"])}
    assert shown(ada, "open")["open"] == ("Open", ["Team"])
    assert shown(ada, "board") == {}


WRITER = Person("pusher", "writer")


def test_a_move_changes_the_parent_alone(workspace: Workspace) -> None:
    workspace.put("board", inherit=False, read=["bob"])
    workspace.put("a", inherit=False, read=["eve"])
    workspace.push({"a": "alpha marka"})
    workspace.sync()
    moved = workspace.send("PATCH", "/rag/tree/a", {"parent": "board"}, by=WRITER)
    assert (moved.status_code, moved.json()["scope"]) == (200, "page:a")
    said = workspace.send("GET", "/rag/tree/a", by=WRITER).json()
    assert (said["parent"], said["inherit"], said["read"]) == ("board", False, ["eve"])
    assert found(workspace, Person("eve")) == {"marka"}
    assert found(workspace, ADA) == found(workspace, Person("bob")) == set()
    back = workspace.send("PATCH", "/rag/tree/a", {"parent": None, "read": []}, by=ADMIN)
    assert back.status_code == 200
    said = workspace.send("GET", "/rag/tree/a", by=ADMIN).json()
    assert (said["parent"], said["inherit"], said["read"]) == ("root", False, [])
    assert workspace.send("PATCH", "/rag/tree/gone", {"parent": "a"}, by=ADMIN).status_code == 404
    assert workspace.send("GET", "/rag/tree/gone", by=ADMIN).status_code == 404
    for method, path in (("PATCH", "/rag/tree/a"), ("GET", "/rag/tree"), ("GET", "/rag/tree/a")):
        assert workspace.send(method, path, {}, by=ADA).status_code == 403


def test_lines_put_and_change_pages_whatever_their_order(workspace: Workspace) -> None:
    workspace.push({"a": "alpha marka", "b": "beta markb"})
    workspace.sync()
    lines = workspace.put_lines(
        [
            {"uuid": "b", "parent": "a"},
            {"uuid": "a", "inherit": False, "read": ["bob"]},
            {"uuid": "x", "parent": "x"},
            {"uuid": "odd", "parnt": "a"},
            {"op": "change", "uuid": "never", "parent": "a"},
            {"op": "change", "uuid": "b", "archived": True},
            {"uuid": "no such id", "parent": "a"},
        ],
        by=WRITER,
    )
    outcomes = [line["outcome"] for line in lines]
    assert outcomes == ["done", "done", "invalid", "invalid", "unknown-page", "done", "invalid"]
    assert lines[1]["scope"] == "page:a"
    assert lines[2]["errors"][0]["field"] == "parent"
    [moved] = workspace.put_lines([{"op": "move", "uuid": "a"}])
    assert moved["errors"] == [{"field": "op", "problem": "op must be put or change"}]
    workspace.sync()
    assert found(workspace, Person("bob")) == {"marka"}
    assert found(workspace, ADA) == set()
    workspace.put_lines([{"op": "change", "uuid": "b", "archived": False}])
    workspace.sync()
    assert found(workspace, Person("bob")) == {"marka", "markb"}
    listed = workspace.send("GET", "/rag/tree", by=WRITER, limit=2).json()
    assert [page["uuid"] for page in listed["pages"]] == ["a", "b"]
    following = workspace.send("GET", "/rag/tree", by=WRITER, after=listed["next"]).json()
    assert ([page["uuid"] for page in following["pages"]], following["next"]) == (["root"], None)
    below = workspace.send("GET", "/rag/tree", by=WRITER, parent="a").json()["pages"]
    assert [page["uuid"] for page in below] == ["b"]
    assert workspace.send("POST", "/rag/tree", by=ADA, lines=[{"uuid": "a"}]).status_code == 403


def test_a_manifest_makes_the_tree_the_same_unless_too_much_would_go(workspace: Workspace) -> None:
    workspace.put_lines([{"uuid": f"p{number}"} for number in range(40)])
    workspace.push({"p1": "alpha marka", "p39": "omega markb"})
    workspace.sync()
    manifest = [{"uuid": f"p{number}"} for number in range(39)]
    manifest[1] = {"uuid": "p1", "parent": "new", "inherit": False, "read": ["bob"]}
    manifest.append({"uuid": "new", "parent": "p0"})

    def reconcile(lines: list[Any], **parameters: Any) -> Any:
        path = "/rag/tree/reconcile"
        return workspace.send("POST", path, by=WRITER, lines=lines, **parameters)

    compared = reconcile(manifest).json()
    counts = (compared["missing"], compared["stale"], compared["extra"], compared["removed"])
    assert counts == (1, 1, 1, 0)
    assert {(one["uuid"], one["difference"]) for one in compared["pages"]} == {
        ("new", "missing"),
        ("p1", "stale"),
        ("p39", "extra"),
    }
    assert found(workspace, ADA) == {"marka", "markb"}
    done = reconcile(manifest, apply=True).json()
    assert (done["removed"], done["documents"]) == (1, 2)
    assert found(workspace, ADA) == set()
    assert found(workspace, Person("bob")) == {"marka"}
    few = [line for line in manifest if line["uuid"] in {"p0", "p1", "new"}]
    refused = reconcile(few, apply=True)
    assert (refused.status_code, refused.json()["type"].rpartition(":")[2]) == (
        409,
        "deletions-held",
    )
    assert reconcile(manifest).json()["extra"] == 0
    later = reconcile(few, apply=True, as_of="2020-01-01T00:00:00Z").json()
    assert (later["extra"], later["removed"]) == (0, 0)
    assert reconcile(few, apply=True, allow_deletes=True).json()["removed"] == 37
    orphan = reconcile([{"uuid": "p0", "parent": "unnamed"}])
    assert orphan.status_code == 422
    [error] = reconcile([{"uuid": 5}]).json()["errors"]
    assert error == {"field": "uuid", "problem": "line 1: it must be a string"}


@pytest.mark.long
@pytest.mark.nightly  # it measures time, and other tests load the machine
def test_twenty_thousand_pages_are_put_within_a_minute(workspace: Workspace) -> None:
    pages = [
        {"uuid": f"p{n}", "parent": f"p{n // 8}" if n >= 8 else None}
        | ({"read": [f"user{n % 97}"], "inherit": n % 2 == 0} if n % 20 == 0 else {})
        for n in range(1, 20_001)
    ]
    began = time.monotonic()
    for start in range(0, len(pages), 5_000):
        lines = workspace.put_lines(pages[start : start + 5_000])
        assert {line["outcome"] for line in lines} == {"done"}
    assert time.monotonic() - began < 60
    began = time.monotonic()
    workspace.put_lines([{"op": "change", "uuid": "p1", "read": ["ada"]}])
    assert time.monotonic() - began < 10
