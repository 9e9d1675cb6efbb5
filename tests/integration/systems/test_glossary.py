"""A system in its own package: every part of it works once the package is installed.

The package is installed by pip, and everything runs in processes that find it like any other.
"""

from __future__ import annotations

import asyncio
import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent
from typing import Any

import httpx2
import pytest
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client

from tests.installation import CommandResult, Installation
from tests.security.service_process import started

pytestmark = pytest.mark.long

PACKAGE = Path(__file__).resolve().parents[2] / "systems" / "glossary"
TENANTS = """
tenants:
  - id: words
    profile: glossary
    sources:
      - {name: terms, type: terms, file: terms.txt}
"""
TERMS = """
valve: opens at 4 bar, unlike the valve cover
valve cover: keeps the valve, the valve seat and every other part of the valve dry
seat: what a valve closes against
"""


@dataclass(frozen=True)
class Installed:
    """An installation whose processes find the package.

    Attributes:
        packages: the folder in which it is installed.
    """

    home: Installation
    packages: Path

    def run(self, *arguments: str) -> CommandResult:
        """Run a command."""
        return self.home.cli(*arguments, PYTHONPATH=str(self.packages))

    def result(self, *arguments: str) -> Any:
        """Run a command that must succeed; return its JSON."""
        ran = self.run(*arguments, "--json")
        assert ran.code == 0, (ran.out, ran.err)
        return ran.json

    def python(self, program: str) -> Any:
        """Run a program; return the JSON in its last line."""
        ran = subprocess.run(
            [sys.executable, "-W", "ignore", "-c", dedent(program)],
            env={**self.home.environment, "PYTHONPATH": f"{self.packages}:{Path.cwd()}"},
            capture_output=True,
            text=True,
            check=False,
        )
        assert ran.returncode == 0, ran.stderr
        return json.loads(ran.stdout.splitlines()[-1])


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Install the package; return the folder."""
    folder = tmp_path_factory.mktemp("packages")
    source = shutil.copytree(PACKAGE, folder / "source")
    target = folder / "installed"
    options = ("--no-deps", "--no-build-isolation", "--no-index", "--quiet")
    install = [sys.executable, "-m", "pip", "install", *options, "--target", str(target)]
    subprocess.run([*install, str(source)], check=True)
    return target


@pytest.fixture(scope="module")
def glossary(shared_installation: Installation, packages: Path) -> Iterator[Installed]:
    """Create and sync a tenant with the system's profile."""
    home = shared_installation.home
    (home / "tenants.yaml").write_text(TENANTS)
    (home / "terms.txt").write_text(TERMS)
    installed = Installed(shared_installation, packages)
    with shared_installation.fork_server(PYTHONPATH=str(packages)):
        synced = installed.result("sync", "words")
        assert synced["error"] is None
        assert synced["stages"]["raw_documents"]["added"] == 3
        yield installed


@pytest.fixture(scope="module")
def token(glossary: Installed) -> str:
    return str(glossary.result("tokens", "create", "words")["token"])


@pytest.fixture(scope="module")
def service(
    glossary: Installed, token: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Any]:
    log = tmp_path_factory.mktemp("log") / "serve.log"
    with started(glossary.home, log, PYTHONPATH=str(glossary.packages)) as (_, port):
        headers = {"Authorization": f"Bearer {token}"}
        with httpx2.Client(base_url=f"http://127.0.0.1:{port}", headers=headers) as client:
            yield client


def test_its_source_chunker_and_profile_make_a_tenants_chunks(glossary: Installed) -> None:
    documents = glossary.result("documents", "words")["documents"]
    assert {d["uri"]: d["chunks"] for d in documents} == {
        "terms/seat.txt": 1,
        "terms/valve.txt": 1,
        "terms/valve%20cover.txt": 1,
    }
    [hit, *_] = glossary.result("search", "words", "closes against", "--mode", "text")["hits"]
    assert hit["heading_path"] == ["seat"]
    assert hit["text"] == "seat: what a valve closes against"


def test_its_step_orders_the_hits(glossary: Installed) -> None:
    for mode in ("text", "knn", "hybrid"):
        hits = glossary.result("search", "words", "valve", "--mode", mode)["hits"]
        assert hits[0]["text"].startswith("valve: ")
        assert len(hits) == 3


def test_its_endpoint_answers_callers_with_a_token(service: Any) -> None:
    answer = service.get("/rag/glossary/seat")
    assert answer.status_code == 200
    assert answer.json()["text"] == "seat: what a valve closes against"
    anonymous = service.get("/rag/glossary/seat", headers={"Authorization": ""})
    assert anonymous.status_code == 401
    assert "/rag/glossary/{term}" in service.get("/openapi.json").json()["paths"]


def test_its_table_counts_and_its_command_prints(glossary: Installed, service: Any) -> None:
    before = glossary.result("glossary", "lookups", "words")["lookups"].get("valve", 0)
    counts = [service.get("/rag/glossary/valve").json()["lookups"] for _ in range(2)]
    assert counts == [before + 1, before + 2]
    assert glossary.result("glossary", "lookups", "words")["lookups"]["valve"] == before + 2
    assert "glossary" in glossary.run("--help").out


@pytest.mark.parametrize("way", ["stdio", "http"])
def test_agents_are_listed_its_tool_and_may_call_it(
    glossary: Installed, service: Any, token: str, way: str
) -> None:
    names, text = asyncio.run(_called(glossary) if way == "stdio" else _posted(service))
    assert names == {"rag_search", "glossary_define"}
    assert text == "seat: what a valve closes against"


async def _called(glossary: Installed) -> tuple[set[str], str]:
    server = StdioServerParameters(
        command=sys.executable,
        args=["-m", "rag_assets.cli", "mcp", "words"],
        env={**glossary.home.environment, "PYTHONPATH": str(glossary.packages)},
    )
    async with Client(stdio_client(server)) as client:
        names = {tool.name for tool in (await client.list_tools()).tools}
        result = await client.call_tool("glossary_define", {"term": "seat"})
        return names, result.content[0].text  # type: ignore[union-attr]


async def _posted(service: Any) -> tuple[set[str], str]:
    def call(method: str, **params: Any) -> Any:
        message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        accept = {"Accept": "application/json, text/event-stream"}
        return service.post("/mcp", json=message, headers=accept).json()["result"]

    names = {tool["name"] for tool in call("tools/list")["tools"]}
    called = call("tools/call", name="glossary_define", arguments={"term": "seat"})
    return names, called["content"][0]["text"]


def test_its_check_is_evaluated_with_the_others(glossary: Installed) -> None:
    checks = glossary.result("check", "words")["checks"]
    [found] = [check for check in checks if check["check"] == "defined_once"]
    assert (found["asset"], found["passed"]) == ("chunks", True)


def test_dagster_loads_its_asset_job_schedule_and_sensor(glossary: Installed) -> None:
    found = glossary.python("""
        import json
        import dagster as dg
        from rag_assets.definitions import build_defs
        from rag_assets.declarations import PLAIN

        repository = build_defs().get_repository_def()
        instance = dg.DagsterInstance.ephemeral()
        instance.add_dynamic_partitions(PLAIN.partitions_name, ["words"])
        counted = repository.get_job("count_terms").execute_in_process(instance=instance)
        made = repository.get_implicit_global_asset_job_def().execute_in_process(
            instance=instance,
            partition_key="words",
            asset_selection=[dg.AssetKey("glossary_terms")],
        )
        [event] = made.get_asset_materialization_events()
        schedule = repository.get_schedule_def("count_terms_daily")
        sensor = repository.get_sensor_def("glossary_lookups_sensor")
        print(json.dumps({
            "counted": counted.success,
            "terms": event.materialization.metadata["terms"].value,
            "schedule": schedule.job_name,
            "sensor": sensor.job_name,
        }))
    """)
    assert found == {
        "counted": True,
        "terms": 3,
        "schedule": "count_terms",
        "sensor": "count_terms",
    }


def test_its_page_is_among_the_panels_pages_with_their_policy(glossary: Installed) -> None:
    found = glossary.python("""
        import json
        from starlette.applications import Starlette
        from starlette.testclient import TestClient
        from rag_assets.plugins.registry import installed_systems
        from rag_assets.web.pages import build_routes

        pages = [*installed_systems().load("pages").values()]
        answer = TestClient(Starlette(routes=build_routes(pages=pages))).get("/glossary")
        print(json.dumps([answer.status_code, answer.text, dict(answer.headers)]))
    """)
    status, text, headers = found
    assert status == 200
    assert text.startswith("<h1>Glossary</h1>")
    assert headers["content-security-policy"].startswith("default-src 'none'")


def test_without_the_package_its_tenants_profile_is_unknown(glossary: Installed) -> None:
    ran = glossary.home.cli("tenants", "list")
    assert ran.code == 1
    assert "no profile 'glossary'" in ran.err
    assert glossary.home.cli("glossary", "lookups", "words").code == 2


def test_no_part_that_serves_imports_dagster(glossary: Installed) -> None:
    loaded = glossary.python("""
        import json, sys
        from rag_assets.plugins.registry import installed_systems

        for kind in ("source_kinds", "chunkers", "routers", "pages", "commands", "tools",
                     "prompts", "retrieval_steps"):
            assert installed_systems().load(kind)
        print(json.dumps("dagster" in sys.modules))
    """)
    assert loaded is False
