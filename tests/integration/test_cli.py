"""The command line's contract: JSON of a fixed shape, and one line for bad input."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

import psycopg
import pytest

from rag_assets.resources.stores import close_all
from rag_assets.search.model import SearchAnswer
from tests.driving import Driver
from tests.installation import FAST, CommandResult, Installation

Run = Callable[..., CommandResult]

STAGE_COUNTS = {
    "raw_documents": {"added", "changed", "removed", "failed", "seconds"},
    "parsed_text": {"parsed", "failed", "seconds"},
    "chunks": {"chunks", "masked_secrets", "dropped_secrets", "seconds"},
    "embeddings": {"embedded", "reused", "seconds"},
    "search_index": {"upserted", "deleted", "seconds"},
}
HIT = {
    *("score", "text", "uri", "title", "heading_path", "page", "start", "end"),
    *("document_id", "chunk_id"),
}


@pytest.fixture
def run(shared_installation: Installation) -> Run:
    return shared_installation.command


def assert_refused(said: CommandResult, *parts: str) -> None:
    """Fail unless standard error has one clear line and a hint, and nothing else is printed."""
    assert said.code != 0
    assert said.out == ""
    lines = said.err.splitlines()
    assert len(lines) == 2, said.err
    assert lines[0].startswith("error: ")
    assert lines[1].startswith("hint: ")
    for part in parts:
        assert part in said.err, said.err


def assert_refused_as_json(said: CommandResult) -> None:
    assert said.code != 0
    answer = json.loads(said.out)
    assert answer.keys() == {"error", "hint"}
    assert answer["error"]
    assert answer["hint"]


# -- what succeeds


def test_a_new_token_is_all_that_is_printed_on_standard_output(
    run: Run, shared_installation: Installation
) -> None:
    somebody(shared_installation)
    created = run("tokens", "create", "somebody")
    assert created.code == 0, created.err
    [token] = created.out.splitlines()
    assert token.startswith("rag_")
    assert "of somebody is not shown again: store it now" in created.err
    assert token not in created.err


def test_the_commands_of_a_tenant_in_json(
    run: Run, tmp_path: Path, shared_installation: Installation
) -> None:
    folder = tmp_path / "My Notes (2024)"
    folder.mkdir()
    (folder / "one.md").write_text("# One\n\nThe first note is about harbours.\n")
    source = str(folder)
    added = run("tenants", "add", "life", "--source", source, "--organization", "acme", "--json")
    assert added.code == 0, added.err
    tenant = json.loads(added.out)["tenant"]
    assert (tenant["id"], tenant["organization"]) == ("life", "acme")
    shared_installation.configure("life", **FAST)

    plan = json.loads(run("plan", "life", "--json").out)
    assert (plan["added"], plan["chunks"], plan["embeddings"], plan["removed"]) == (1, 1, 1, 0)
    assert plan["tokens"] > 0

    sync = json.loads(run("sync", "life", "--json").out)
    assert sync["tenant"] == "life"
    assert sync["stages"].keys() == STAGE_COUNTS.keys()
    for stage, counts in STAGE_COUNTS.items():
        assert counts <= sync["stages"][stage].keys()
        assert sync["stages"][stage]["seconds"] >= 0
    assert sync["stages"]["raw_documents"]["added"] == plan["added"]
    assert sync["stages"]["chunks"]["chunks"] == plan["chunks"]
    assert sync["stages"]["embeddings"]["embedded"] == plan["embeddings"]
    both = json.loads(run("sync", "--all", "--json").out)
    assert [answer["tenant"] for answer in both["tenants"]] == ["life"]

    answer = json.loads(run("search", "life", "harbours", "--mode", "text", "--json").out)
    assert answer.keys() == {field.name for field in fields(SearchAnswer)}
    hits = answer["hits"]
    assert hits[0]["modified_at"].endswith("Z")
    assert len(hits) == 1
    assert hits[0].keys() >= HIT
    assert hits[0]["chunk_id"] == "life:one.md:0"
    assert hits[0]["heading_path"] == ["One"]

    [document] = json.loads(run("documents", "life", "--json").out)["documents"]
    assert (document["status"], document["chunks"], document["error"]) == ("READY", 1, None)
    [listed] = json.loads(run("tenants", "list", "--json").out)["tenants"]
    assert (listed["id"], listed["state"], listed["documents"]) == ("life", "ACTIVE", 1)
    assert json.loads(run("tenants", "disable", "life", "--json").out)["state"] == "DISABLED"
    silent = json.loads(run("search", "life", "harbours", "--json").out)
    assert (silent["hits"], silent["disabled"]) == ([], True)
    assert json.loads(run("tenants", "enable", "life", "--json").out)["state"] == "ACTIVE"
    removed = json.loads(run("tenants", "remove", "life", "--yes", "--json").out)
    assert (removed["removed"], removed["entries"]) == (True, 1)
    assert json.loads(run("tenants", "list", "--json").out) == {"tenants": []}


@pytest.mark.parametrize("arguments", [("tenants", "list"), ("search", "nobody", "anything")])
def test_a_command_gives_its_connections_back(
    run: Run, shared_installation: Installation, arguments: tuple[str, ...]
) -> None:
    with psycopg.connect(
        shared_installation.environment["RAG_ASSETS_DATABASE_URL"], autocommit=True
    ) as own:
        before = connected(own)
        run(*arguments)
        wait_for_the_end_of_others(own, before)


def test_a_sync_gives_its_connections_back(run: Run, shared_installation: Installation) -> None:
    folder = shared_installation.add_tenant("brief", **FAST)
    (folder / "a.md").write_text("# A\n\nText.\n")
    with psycopg.connect(
        shared_installation.environment["RAG_ASSETS_DATABASE_URL"], autocommit=True
    ) as own:
        before = connected(own)
        assert run("sync", "brief").code == 0
        close_all()  # the resources' own connections, which a process keeps
        wait_for_the_end_of_others(own, before)


def wait_for_the_end_of_others(own: psycopg.Connection[Any], before: set[int]) -> None:
    """Wait until all connections that were opened since are closed."""
    deadline = time.monotonic() + 5
    while left := connected(own) - before:  # a server process ends a little later
        assert time.monotonic() < deadline, left
        time.sleep(0.01)


def connected(own: psycopg.Connection[Any]) -> set[int]:
    """Return the process ids of the connections to the installation's database."""
    query = "SELECT pid FROM pg_stat_activity WHERE datname = current_database()"
    return {pid for (pid,) in own.execute(query)}


def test_a_plan_changes_nothing(
    run: Run, driver: Driver, shared_installation: Installation
) -> None:
    folder = shared_installation.add_tenant("planned", **FAST)
    (folder / "a.md").write_text("# A\n\nText.\n")
    (folder / "b.md").write_bytes(b"\xff\xfe broken")
    plan = json.loads(run("plan", "planned", "--json").out)
    assert (plan["added"], plan["failed"], plan["embeddings"]) == (2, 1, 1)
    assert driver.session.catalog.documents.all("planned") == []
    assert ("planned", 1) not in list(driver.session.lake.incarnations())
    done = driver.sync("planned")
    assert (done["added"], done["failed"], done["embedded"]) == (2, 1, 1)
    (folder / "a.md").unlink()
    plan = json.loads(run("plan", "planned", "--json").out)
    assert (plan["removed"], plan["entries_deleted"], plan["embeddings"]) == (1, 1, 0)
    assert driver.sync("planned")["deleted"] == 1
    text = run("plan", "planned")
    assert text.code == 0
    assert "A sync of planned would" in text.out


def test_status_lists_the_servers(run: Run) -> None:
    assert isinstance(json.loads(run("status", "--json").out), dict)
    assert run("status").code == 0


# -- what is refused

BAD: list[tuple[tuple[str, ...], tuple[str, ...]]] = [
    (("sync", "nobody"), ("no tenant 'nobody'", "tenants list")),
    (("sync",), ("no tenant is named", "--all")),
    (("plan", "nobody"), ("no tenant 'nobody'",)),
    (("check", "nobody"), ("no tenant 'nobody'",)),
    (("search", "nobody", "a question"), ("no tenant 'nobody'",)),
    (("documents", "nobody"), ("no tenant 'nobody'",)),
    (("documents", "No/Body\n"), ("no tenant",)),
    (("tenants", "remove", "nobody", "--yes"), ("no tenant 'nobody'",)),
    (("tenants", "enable", "nobody"), ("no tenant 'nobody'",)),
    (("tenants", "disable", "nobody"), ("no tenant 'nobody'",)),
    (("search", "somebody", " "), ("empty",)),
    (("search", "somebody", "q", "--top-k", "0"), ("top_k",)),
    (("search", "somebody", "q", "--top-k", "101"), ("top_k",)),
    (("search", "somebody", "q", "--top-k", "many"), ("--top-k",)),
    (("search", "somebody", "q", "--min-score", "1.5"), ("min_score",)),
    (("search", "somebody", "q", "--min-score", "nan"), ("min_score",)),
    (("search", "somebody", "q", "--metadata", "team"), ("--metadata", "KEY=VALUE")),
    (("answer", "somebody", "q", "--language", "German"), ("filters.languages.0", "ISO 639-1")),
    (("search", "somebody", "q", "--mode", "magic"), ("magic", "knn")),
    (("search", "somebody", "q", "--as", ""), ("principals.0", "must not be empty")),
    (("tokens", "create", "somebody", "--principal", ""), ("principals.0", "must not be empty")),
    (("hold", "set", "somebody", "--reason", " "), ("a hold needs a reason",)),
    (("documents", "caf\udce9"), ("an argument of the command is not UTF-8",)),
    (("access", "grant", "somebody", "caf\udce9", "ada"), ("an argument", "is not UTF-8")),
    (("search", "somebody"), ("QUESTION",)),
    (("frobnicate",), ("frobnicate",)),
    (("sync", "somebody", "--frob"), ("--frob",)),
    (("tenants", "frobnicate"), ("frobnicate",)),
]


@pytest.mark.parametrize(("arguments", "parts"), BAD, ids=lambda value: " ".join(value)[:40])
def test_bad_input_is_reported_in_one_line(
    run: Run, shared_installation: Installation, arguments: tuple[str, ...], parts: tuple[str, ...]
) -> None:
    somebody(shared_installation)
    assert_refused(run(*arguments), *parts)
    assert_refused_as_json(run(*arguments, "--json"))


def somebody(installation: Installation) -> None:
    path = installation.home / "tenants.yaml"
    if not path.exists() or "somebody" not in path.read_text():
        installation.add_tenant("somebody", **FAST)


@pytest.mark.parametrize("tenant_id", ["Upper", "a b", "../up", "-a", "a..b", "x" * 64, "", "ä"])
def test_bad_ids_are_refused(run: Run, tmp_path: Path, tenant_id: str) -> None:
    arguments = ["tenants", "add", "--source", str(tmp_path), "--", tenant_id]
    assert_refused(run(*arguments), "id")


def test_bad_tenants_are_refused_and_nothing_is_written(
    run: Run, shared_installation: Installation, tmp_path: Path
) -> None:
    somebody(shared_installation)
    home = shared_installation.home
    before = (home / "tenants.yaml").read_text()
    a_file = tmp_path / "file.md"
    a_file.touch()
    for source, extra, part in (
        (tmp_path / "missing", (), "is not a folder"),
        (a_file, (), "is not a folder"),
        (tmp_path, ("--profile", "no-such"), "no profile 'no-such'"),
        (home, (), ".local"),
        (home / ".local", (), ".local"),
        (Path("/"), (), ".local"),
    ):
        said = run("tenants", "add", "newcomer", "--source", str(source), *extra)
        assert_refused(said, part)
    assert_refused(run("tenants", "add", "newcomer"), "--source")
    assert_refused(run("tenants", "add", "somebody", "--source", str(tmp_path)), "already exists")
    assert (home / "tenants.yaml").read_text() == before


def test_adding_a_tenant_offers_the_embedder_that_its_languages_need(
    run: Run, tmp_path: Path, shared_installation: Installation
) -> None:
    paragraphs = {
        "de": "Die Kündigungsfrist beträgt drei Monate zum Ende eines Quartals, sofern im"
        " Arbeitsvertrag keine andere Frist vereinbart wurde.",
        "en": "The notice period is three months to the end of a quarter, unless the contract of"
        " employment says something else.",
        "ar": "مدة الإشعار ثلاثة أشهر حتى نهاية ربع السنة ما لم ينص عقد العمل على خلاف ذلك.",
    }
    for name, languages in {"mixed": ("de", "en", "ar"), "english": ("en",)}.items():
        (tmp_path / name).mkdir()
        for language in languages:
            (tmp_path / name / f"{language}.md").write_text(paragraphs[language])
    offered = run("tenants", "add", "mixed", "--source", str(tmp_path / "mixed"))
    assert "2 of 3 sampled documents are in other languages than English" in offered.out
    assert "embedder: {model: multilingual-e5-small} for mixed" in offered.out
    source = str(tmp_path / "mixed")
    chosen = run(
        *("tenants", "add", "chosen", "--source", source, "--embedder", "multilingual-e5-small"),
        "--json",
    )
    assert json.loads(chosen.out)["tenant"]["embedder"] == {"model": "multilingual-e5-small"}
    assert "advice" not in json.loads(chosen.out)
    english = run("tenants", "add", "english", "--source", str(tmp_path / "english"), "--json")
    assert "advice" not in json.loads(english.out)
    assert_refused(
        run("tenants", "add", "other", "--source", source, "--embedder", "bge"),
        "the model 'bge' is not shipped",
    )


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("tenants:\n  - id: a\n    sources: [\n", ("tenants.yaml, line 4",)),
        ("tenants:\n  - id: a\n  id: b\n", ("tenants.yaml, line 3",)),
        ("tenants: 3\n", ("a list named tenants",)),
        ("- a\n", ("a list named tenants",)),
        ("tenants:\n  - profile: documents\n", ("tenant number 1 has no id",)),
        ("tenants:\n  - {id: a}\n  - {id: a}\n", ("listed twice",)),
        ("tenants:\n  - {id: a, profile: none-such}\n", ("no profile 'none-such'",)),
        ("tenants:\n  - {id: a, retention_days: 0}\n", ("retention_days",)),
        ("tenants:\n  - {id: a, chunker: {max_tokens: -1}}\n", ("max_tokens",)),
        ("tenants:\n  - {id: a, embedder: {provider: none-such}}\n", ("provider",)),
        ("tenants:\n  - {id: a, parser: {seconds: .inf}}\n", ("seconds",)),
        ("tenants:\n  - {id: a, colour: red}\n", ("colour",)),
        ("tenants:\n  - {id: a, sources: [{name: A B, type: files, root: x}]}\n", ("name",)),
        ("tenants:\n  - {id: a, sources: [{name: a, type: ftp, root: x}]}\n", ("type",)),
    ],
)
def test_a_broken_file_is_reported_with_its_place(
    run: Run, shared_installation: Installation, text: str, parts: tuple[str, ...]
) -> None:
    path = shared_installation.home / "tenants.yaml"
    before = path.read_text() if path.exists() else None
    path.write_text(text)
    try:
        assert_refused(run("tenants", "list"), *parts)
        assert_refused_as_json(run("tenants", "list", "--json"))
    finally:
        path.unlink() if before is None else path.write_text(before)


@pytest.mark.long
def test_unavailable_servers_are_named_with_the_remedy(
    run: Run, shared_installation: Installation, driver: Driver, tmp_path: Path
) -> None:
    somebody(shared_installation)
    driver.sync("somebody")
    (tmp_path / "home").mkdir()
    nowhere = {"RAG_ASSETS_DATABASE_URL": "postgresql://u:hidden@127.0.0.1:1/x"}
    deaf = {"RAG_ASSETS_ELASTICSEARCH_URL": "http://127.0.0.1:1"}
    none = {
        "RAG_ASSETS_DATABASE_URL": "",
        "RAG_ASSETS_ELASTICSEARCH_URL": "",
        "RAG_ASSETS_HOME": str(tmp_path / "home"),
    }
    for env, command, server in (
        (nowhere, ("tenants", "list"), "Postgres"),
        (deaf, ("search", "somebody", "q"), "Elasticsearch"),
        (none, ("tenants", "list"), "Postgres"),
        ({"RAG_ASSETS_HOME": str(tmp_path / "none")}, ("status",), "RAG_ASSETS_HOME"),
    ):
        said = run(*command, **env)
        assert_refused(said, server)
        assert "hidden" not in said.err
    # A sync that meets this fault writes nothing, and continues when the server is back.
    folder = shared_installation.home.parent / "sources" / "somebody"
    (folder / "a.md").write_text("# A\n\nText.\n")
    said = shared_installation.cli("sync", "somebody", **deaf)
    assert said.code == 1
    assert "Elasticsearch does not answer" in said.err
    assert "rag-assets up" in said.err
    assert "Traceback" not in said.err
    assert shared_installation.synced("somebody")["search_index"]["upserted"] == 1


def test_an_unexpected_error_shows_no_traceback(
    shared_installation: Installation, tmp_path: Path
) -> None:
    lake = tmp_path / "lake"
    lake.write_text("a file where a folder belongs")
    somebody(shared_installation)
    folder = shared_installation.home.parent / "sources" / "somebody"
    (folder / "b.md").write_text("# B\n\nA confidential text.\n")
    said = shared_installation.cli(
        "sync", "somebody", RAG_ASSETS_LAKE_URL=str(lake), RAG_ASSETS_DEBUG=""
    )
    assert said.code == 1
    assert "Traceback" not in said.out + said.err
    assert "confidential" not in said.out + said.err


def test_help_is_there_for_every_command(run: Run) -> None:
    listed: Any = run("--help")
    assert listed.code == 0
    for command in ("up", "down", "status", "tenants", "plan", "sync", "check", "search", "demo"):
        assert command in listed.out
        assert run(command, "--help").code == 0


def test_a_group_without_a_command_shows_its_help(run: Run) -> None:
    of_a_system = (("guidelines",), "context")
    for group, one_of_them in (((), "search"), (("tenants",), "remove"), of_a_system):
        said = run(*group)
        assert said.code == 2
        assert said.out.startswith("Usage: ")
        assert one_of_them in said.out
        assert "completion" not in said.out
        assert said.err == ""
