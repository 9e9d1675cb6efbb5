"""Random scopes: no answer about code reveals anything that the caller may not read.

Each repository of the tenant has a mark in all its names and texts, besides names that all
repositories share. Callers with random grants use every interface. No mark of a repository that
they may not read may come back, and its names must be answered exactly like names that do not
exist.
"""

from __future__ import annotations

import asyncio
import json
import random
import re
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

import jwt
import pytest
from starlette.testclient import TestClient

from rag_assets.api.app import build_app
from rag_assets.api.backend import Backend
from rag_assets.api.rate_limits import Rate
from rag_assets.api.settings import JwtSettings, ServiceSettings
from rag_assets.billing.chat_models import ChatModels
from rag_assets.mcp.server import build_server
from rag_assets.mcp.tools import DEFAULT_TOOLS, Knowledge, MessageContext, message_context
from rag_assets.panel.application import build_panel
from rag_assets.panel.settings import PanelSettings
from rag_assets.plugins.registry import installed_systems
from rag_assets.search import AsyncRetriever
from rag_assets.search.access import DocumentReader
from rag_assets.search.model import Caller, SearchRequest
from rag_assets.storage.blobs.store import open_blobs
from rag_assets.systems.code_memory.retrieval.walk import MAX_STEPS, Walker
from rag_assets.systems.code_memory.sources.records import get_repository_source
from tests.databases import as_service
from tests.driving import Driver
from tests.installation import FAST, Installation

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

TENANT: Final = "code-vault"
SECRET: Final = "an example secret of more than 32 bytes"
SETTINGS: Final = ServiceSettings(
    jwt=JwtSettings(secret=SECRET),
    rate=Rate.parse("100000/minute"),
    attempts=Rate.parse("100000/minute"),
)
ORIGIN: Final = "http://127.0.0.1"
REPOSITORIES: Final = 6
SCOPES: Final = ("public", "inner", "board", "audit")
GROUPS: Final = 5
CALLERS: Final = 3
INCLUDED: Final = ["**/*.php", "**/*.md", "**/composer.json", ".cursor/**/*.mdc"]
PARTS: Final = {
    "of routes or tables computed",
    "on facades not followed",
    "group:routes/web.php:4",
    "Policy::view",
    '"framework":"laravel"',
    "cursor_rule",
    "claude_rule",
    "known_bug",
}
"""Of answers, beside names."""
SEARCHES: Final = ("query", "retrieve", "clarify", "tool code_search", "panel  ")
NOBODY_HAS: Final = "zq99x"
"""A mark of the form of the others, of no repository."""


def mark_of(number: int) -> str:
    return f"zq{number:02d}x"


def files_of(mark: str) -> dict[str, str]:
    """Return the files of a small application that has its mark everywhere, and shared names."""
    name = mark.title()
    index = f"[\\App\\Http\\Controllers\\{name}Controller::class, 'index']"
    asks = f"->middleware('can:view,App\\Models\\{name}')"
    return {
        "bootstrap/app.php": "<?php\nuse Illuminate\\Foundation\\Application;\n"
        "return Application::configure(basePath: dirname(__DIR__))\n"
        "    ->withRouting(web: __DIR__.'/../routes/web.php')->create();\n",
        "routes/web.php": "<?php\nuse Illuminate\\Support\\Facades\\Route;\n"
        f"Route::get('/{mark}/bills', {index})->name('{mark}.index');\n"
        f"Route::prefix('/'){asks}->group(function () {{\n"
        f"  Route::get('/bills', {index})->name('bills.index');\n"
        f"}});\nRoute::get(config('{mark}.hidden'), fn () => '{mark}');\n"
        f"Route::get('/bills/{{bill}}', fn () => 1)->middleware(config('{mark}.guard'));\n",
        f"app/Http/Controllers/{name}Controller.php": "<?php\nnamespace App\\Http\\Controllers;\n"
        f"use App\\Models\\{name};\nclass {name}Controller\n{{\n"
        f"    public function index()\n    {{\n        \\App\\Facades\\{name}Desk::settle();\n"
        f"        \\App\\Models\\Bill::query();\n        return {name}::all();\n    }}\n}}\n",
        f"app/Facades/{name}Desk.php": "<?php\nnamespace App\\Facades;\n"
        f"class {name}Desk extends \\Illuminate\\Support\\Facades\\Facade {{}}\n",
        f"app/Policies/{name}Policy.php": "<?php\nnamespace App\\Policies;\n"
        f"class {name}Policy {{ public function view() {{ return true; }} }}\n",
        f"app/Models/{name}.php": "<?php\nnamespace App\\Models;\n"
        f"class {name} extends \\Illuminate\\Database\\Eloquent\\Model\n{{\n"
        f"    protected $table = '{mark}_rows';\n"
        "    public function bills() { return $this->hasMany(Bill::class); }\n}\n",
        "app/Models/Bill.php": "<?php\nnamespace App\\Models;\n"
        "class Bill extends \\Illuminate\\Database\\Eloquent\\Model\n{\n"
        f"    // of {mark}\n"
        f"    public function owner() {{ return $this->belongsTo({name}::class); }}\n}}\n",
        "database/migrations/2026_01_01_000000_create_rows.php": "<?php\n"
        "use Illuminate\\Support\\Facades\\Schema;\n"
        "return new class extends \\Illuminate\\Database\\Migrations\\Migration {\n"
        f"  public function up() {{\n    Schema::create('{mark}_rows', function ($table) {{"
        f" $table->id(); $table->string('{mark}_column'); }});\n"
        "    Schema::create('bills', function ($table) {"
        f" $table->id(); $table->foreign('row')->references('id')->on('{mark}_rows'); }});\n"
        f"    Schema::table({mark}_name(), function ($table) {{ $table->string('note'); }});\n"
        "  }\n};\n",
        "composer.json": '{"require": {"laravel/framework": "^11.0", "acme/' + mark + '": "*"}}\n',
        f".cursor/rules/{mark}.mdc": "---\nglobs: app/**/*.php\n---\n"
        f"# {mark} models\n\nBe thin.\n",
        "CLAUDE.md": f"# All of {mark}\n\nBe kind.\n",
        "docs/KNOWN_BUGS.md": f"# Trouble\n\n## Totals of {mark}\n\n`App\\Models\\Bill` adds up"
        f" wrongly.\n\n## Rows of {mark}\n\n`app/Models/Bill.php` loses rows.\n",
        "docs/adr/0001-bills.md": f"# Bills are {mark}\n\nStatus: accepted\n\n"
        f"`App\\Models\\Bill` is kept with `App\\Models\\{name}`.\n",
        f"docs/{mark}.md": f"# Rows\n\nThe {mark} rows of a bill are counted nightly.\n",
        "shared/equal.php": "<?php\nfunction equal_in_all() { return 'the same everywhere'; }\n",
    }


@dataclass(frozen=True, slots=True)
class Vault:
    """The tenant, its readers, and its interfaces.

    Attributes:
        scopes: of the repositories, by their names.
        grants: scopes by group.
    """

    client: TestClient
    driver: Driver
    scopes: Mapping[str, str]
    grants: Mapping[str, frozenset[str]]

    def readable(self, groups: frozenset[str]) -> set[str]:
        granted = {"public"}.union(*(self.grants[group] for group in groups))
        return {name for name, scope in self.scopes.items() if scope in granted}

    def forbidden(self, groups: frozenset[str]) -> list[str]:
        hidden = self.scopes.keys() - self.readable(groups)
        return [mark_of(int(name.removeprefix("repo"))) for name in sorted(hidden)]


@pytest.fixture(scope="module", params=[7], ids=["seed 7"])
def vault(
    request: pytest.FixtureRequest, shared_installation: Installation, driver: Driver
) -> Iterator[Vault]:
    drawn = random.Random(request.param)
    tenant = f"{TENANT}-{request.param}"
    folder = shared_installation.home.parent / "sources" / tenant
    scopes = {f"repo{n}": drawn.choice(SCOPES) for n in range(REPOSITORIES)}
    scopes |= {"repo0": "public", "repo1": "inner"}
    for name in scopes:
        write(folder / name, files_of(mark_of(int(name.removeprefix("repo")))))
    sources = [
        {"name": name, "root": str(folder / name), "include": INCLUDED}
        | ({} if scope == "public" else {"scope": scope})
        for name, scope in scopes.items()
    ]
    shared_installation.add_tenant(
        tenant,
        **FAST,
        profile="code-memory",
        organization="acme",
        project=f"vault{request.param}",
        sources=sources,
    )
    driver.sync(tenant)
    grants = {
        f"g{n}": frozenset(drawn.sample(SCOPES[1:], drawn.randint(0, 2))) for n in range(GROUPS)
    }
    session = driver.session
    with driver.locked(tenant) as ctx:
        for group, granted in grants.items():
            for scope in granted:
                ctx.catalog.access.grant(ctx.ref, scope, [f"group:{group}"])
    catalog = as_service(session)
    retriever = AsyncRetriever(catalog, session.store, session.embedders)
    blobs = open_blobs(session.settings)
    chat_models = ChatModels(catalog, session.settings)
    backend = Backend(catalog, session.store, retriever, SETTINGS, chat_models, blobs=blobs)
    systems = installed_systems()
    panel = build_panel(backend, PanelSettings(), systems.load("panels").values())
    routers = [*systems.load("routers").values(), panel.router]
    app = build_app(backend, routers=routers, pages=panel.routes)
    with TestClient(app, base_url=ORIGIN) as client:
        yield Vault(client, driver, scopes, grants)


def write(root: Path, files: Mapping[str, str]) -> None:
    for path, text in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)


@dataclass(frozen=True, slots=True)
class Asking:
    """A caller of the interfaces."""

    vault: Vault
    tenant: str
    groups: frozenset[str]

    @property
    def caller(self) -> Caller:
        return Caller(principals=tuple(f"group:{group}" for group in sorted(self.groups)))

    @property
    def project(self) -> str:
        return self.tenant.replace(TENANT, "vault").replace("-", "")

    def http(self, method: str, address: str, **given: Any) -> str:
        claims = {"tenants": [self.tenant], "sub": "ann", "exp": int(time.time()) + 3_000}
        token = jwt.encode({**claims, "groups": sorted(self.groups)}, SECRET)
        headers = {"Authorization": f"Bearer {token}"}
        answer = self.vault.client.request(method, address, headers=headers, **given)
        assert answer.status_code == 200, answer.text
        return answer.text

    def answers(self, mark: str) -> dict[str, str]:
        """Return the answers of every interface about a mark, by interface and question."""
        name = mark.title()
        project = f"/api/projects/{self.project}"
        found: dict[str, str] = {}
        for query in questions(mark):
            found[f"query {query}"] = self.http("POST", "/rag/query", json={"query": query})
            body = {"query": query, "options": {"top_k": 50}}
            found[f"retrieve {query}"] = self.http("POST", f"{project}/retrieve", json=body)
            none = {"query": query, "options": {"min_score": 1.0}}
            found[f"clarify {query}"] = self.http("POST", f"{project}/retrieve", json=none)
        for asked in (
            f"{name}Controller@index",
            f"{mark}.index",
            f"table:{mark}_rows",
            "table:bills",
            "group:routes/web.php:4",
            "/bills/{bill}",
            "Bill",
        ):
            for direction in ("in", "out", "both"):
                parameters = {"name": asked, "direction": direction, "depth": MAX_STEPS}
                key = f"relations {asked} {direction}"
                found[key] = self.http("GET", f"{project}/relations", params=parameters)
        for parameters in (
            {"name": name},
            {"name": "Bill"},
            {"path": f"repo1/app/Models/{name}.php"},
        ):
            key = f"symbols {parameters}"
            found[key] = self.http("GET", f"{project}/symbols", params=parameters)
        return found | self._tools(mark) | self._pages(mark) | self._python(mark)

    def _tools(self, mark: str) -> dict[str, str]:
        session = self.vault.driver.session
        name = mark.title()
        calls: list[tuple[str, dict[str, Any]]] = [
            *(("code_search", {"query": query}) for query in questions(mark)),
            *(
                ("who_serves", {"route": route})
                for route in (f"{mark}.index", "bills.index", "/bills", "/bills/7")
            ),
            *(("what_touches", {"table": table}) for table in (f"{mark}_rows", "bills")),
            ("what_touches", {"symbol": f"App\\Models\\{name}"}),
            ("what_touches", {"path": f"app/Models/{name}.php"}),
            ("impact_of", {"symbols": [name, "Bill"]}),
            ("impact_of", {"paths": [f"app/Models/{name}.php", "app/Models/Bill.php"]}),
            ("outline", {"path": f"app/Models/{name}.php"}),
            ("outline", {"path": "app/Models/Bill.php"}),
            ("rules_for", {"paths": [f"app/Models/{name}.php", "app/Models/Bill.php"]}),
            *(("rules_for", {"paths": [f"repo{n}/app/Models/Bill.php"]}) for n in range(2)),
        ]

        async def asked() -> dict[str, str]:
            retriever = AsyncRetriever(
                session.catalog, session.store, session.embedders, is_journaled=False
            )
            reader = DocumentReader(session.catalog, session.store)
            context = MessageContext(self.tenant, self.caller)
            tools = [*DEFAULT_TOOLS, *installed_systems().load("tools").values()]
            server = build_server(Knowledge(retriever.search, reader), lambda _: context, tools)
            try:
                with message_context(context):
                    return {
                        f"tool {tool} {given}": str(await server.call_tool(tool, given))
                        for tool, given in calls
                    }
            finally:
                await retriever.close()

        return asyncio.run(asked())

    def _pages(self, mark: str) -> dict[str, str]:
        """Return the panel pages that an admin with these groups sees."""
        claims = {"sub": "dana@acme.example", "role": "admin", "organization": "acme"}
        claims |= {"exp": int(time.time()) + 600, "groups": sorted(self.groups)}
        headers = {"Authorization": f"Bearer {jwt.encode(claims, SECRET)}"}
        client = self.vault.client
        client.cookies.clear()
        link = client.post("/panel/links", json={"project": self.project}, headers=headers)
        assert link.status_code == 201, link.text
        url = urlsplit(link.json()["url"])
        code, origin = parse_qs(url.query)["code"][0], f"{url.scheme}://{url.netloc}"
        form, headers = {"code": code}, {"Origin": origin}
        entered = client.post(f"{origin}/panel/enter", data=form, headers=headers)
        assert entered.status_code in {200, 303}, entered.text
        name = mark.title()
        pages = [
            *(("", {"q": query}) for query in questions(mark)),
            *(
                ("/names", {"name": one, "depth": "3"})
                for one in (name, "Bill", f"table:{mark}_rows")
            ),
            *(("/files", {"path": f"repo{n}/app/Models/Bill.php"}) for n in range(REPOSITORIES)),
        ]
        found = {}
        for path, parameters in pages:
            answer = client.get(f"{origin}/panel/code{path}", params=parameters)
            assert answer.status_code == 200, answer.text
            found[f"panel {path} {parameters}"] = answer.text
        client.cookies.clear()
        return found

    def _python(self, mark: str) -> dict[str, str]:
        session = self.vault.driver.session
        walker = Walker(session.catalog)
        names = ("Bill", f"table:{mark}_rows", "table:bills", f"{mark}.index")
        walks = {
            f"walk {name}": walker.walk_from_name(self.tenant, self.caller, name, depth=MAX_STEPS)
            for name in names
        }
        readable = self.vault.readable(self.groups)
        for walk in walks.values():
            assert {node.repository for node in walk.nodes} <= readable
        return {key: str(walk) for key, walk in walks.items()}


def questions(mark: str) -> tuple[str, ...]:
    return (
        f"What controller serves route {mark}.index and which model and table does it touch?",
        f"Which migrations created or altered table {mark}_rows?",
        "Which endpoint shows bills, and in which table are they stored?",
        "Which migrations created or altered table bills?",
        f"how are {mark} rows of a bill counted",
        "equal in all",
        f"which known bugs has {mark}",
    )


def asking(vault: Vault, tenant: str, drawn: random.Random) -> list[Asking]:
    groups = sorted(vault.grants)
    chosen = [frozenset(drawn.sample(groups, drawn.randint(0, 3))) for _ in range(CALLERS)]
    return [Asking(vault, tenant, one) for one in dict.fromkeys([frozenset(), *chosen])]


def test_no_answer_shows_what_the_caller_may_not_read(
    vault: Vault, request: pytest.FixtureRequest
) -> None:
    seed = request.node.callspec.params["vault"]
    tenant, drawn = f"{TENANT}-{seed}", random.Random(seed)
    seen: set[str] = set()
    own: set[str] = set()
    answer_parts: set[str] = set()
    for one in asking(vault, tenant, drawn):
        hidden = vault.forbidden(one.groups)
        own |= {mark_of(int(n.removeprefix("repo"))) for n in vault.readable(one.groups)}
        # Answers repeat the question, so the requested mark must be one that nothing has.
        asked = drawn.choice(hidden) if hidden else NOBODY_HAS
        others = [mark for mark in hidden if mark != asked]
        for key, answer in one.answers(asked).items():
            shown = {mark for mark in others if mark in answer.lower()}
            assert not shown, f"{sorted(one.groups)} {key}: {shown}"
            seen |= set(re.findall(r"zq\d\dx", answer.lower()))
            answer_parts |= {part for part in PARTS if part in answer}
    assert answer_parts == PARTS, "all that answers may have must be in one"
    assert own <= seen, "what the callers may read must be found, or nothing is told"


def test_a_hidden_name_is_answered_as_one_that_there_is_not(
    vault: Vault, request: pytest.FixtureRequest
) -> None:
    tenant = f"{TENANT}-{request.node.callspec.params['vault']}"
    nobody = Asking(vault, tenant, frozenset())
    for mark in vault.forbidden(frozenset()):
        hidden, missing = nobody.answers(mark), nobody.answers(NOBODY_HAS)
        assert len(hidden) == len(missing)
        for (key, first), second in zip(hidden.items(), missing.values(), strict=True):
            if key.startswith(SEARCHES):
                continue  # another word has another vector
            assert plain(first, mark) == plain(second, NOBODY_HAS), key


def plain(answer: str, mark: str) -> str:
    """Return an answer without the requested mark, times, ids and scores."""
    text = answer.replace(mark, "MARK").replace(mark.title(), "Mark")
    try:
        answer_parts = json.loads(text)
    except ValueError:
        return re.sub(r'\d+(?:\.\d+)? ms|"[0-9a-f]{64}"', "", text)
    return json.dumps(_without(answer_parts), sort_keys=True)


_CHANGING = {"latency_ms", "steps_ms", "search_id", "score", "scores", "nearest", "request_id"}


def _without(answer_parts: Any) -> Any:
    if isinstance(answer_parts, dict):
        return {key: _without(value) for key, value in answer_parts.items() if key not in _CHANGING}
    return (
        [_without(one) for one in answer_parts] if isinstance(answer_parts, list) else answer_parts
    )


def test_no_count_tells_of_what_is_hidden(vault: Vault, request: pytest.FixtureRequest) -> None:
    tenant = f"{TENANT}-{request.node.callspec.params['vault']}"
    session = vault.driver.session
    events = session.catalog.events.latest(tenant, kind="rag_chunk_indexed", limit=1_000)
    chunks = {event.payload["uri"]: len(event.payload["chunks"]) for event in events}

    async def asked() -> None:
        retriever = AsyncRetriever(
            session.catalog, session.store, session.embedders, is_journaled=False
        )
        try:
            for one in asking(vault, tenant, random.Random(1)):
                readable = vault.readable(one.groups)
                own = {
                    u: n
                    for u, n in chunks.items()
                    if get_repository_source(u.split("/")[0]) in readable
                }
                for query in questions(NOBODY_HAS):
                    wanted = SearchRequest(query=query, top_k=50, caller=one.caller)
                    answer = await retriever.search(tenant, wanted)
                    assert answer.debug is not None
                    assert answer.debug.total_candidates <= sum(own.values())
                    assert {hit.uri for hit in answer.hits} <= own.keys()
                    assert {uri for hit in answer.hits for uri in hit.also} <= own.keys()
        finally:
            await retriever.close()

    asyncio.run(asked())
