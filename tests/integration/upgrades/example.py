"""The installation that each release keeps: a tenant of each profile, and questions to them.

A later release restores it and asks the same questions. Each archive contains its own questions, so
a change here affects only the next release.
"""

from __future__ import annotations

import json
from typing import Any

from tests.driving import Driver
from tests.installation import Installation
from tests.integration.api.conftest import Api, serving
from tests.integration.upgrades.archive import Question
from tests.repositories import MadeRepository

TENANTS = """\
agents:
  - agents/agents.yaml
tenants:
  - id: handbook
    profile: documents
    embedder: &small {provider: deterministic, dimensions: 16}
    sources:
      - {name: files, type: files, root: handbook}
      - {name: uploads, type: uploads}
  - id: guidelines
    profile: team-guidelines
    organization: acme
    project: brand
    embedder: *small
  - id: lessons
    profile: experience
    embedder: *small
    retention_days: 36500  # whenever it is restored
  - id: memory
    profile: code-memory
    organization: acme
    project: shop
    embedder: *small
    sources:
      - {name: code, type: git, root: shop}
  - id: pages
    profile: workspace
    embedder: *small
    sources:
      - {name: pushed, type: records}
"""

FILES = {
    "handbook/backups.md": "# Backups\n\nBackups are kept in the basement for seven years.\n",
    "handbook/pumps/valves.md": "# Valves\n\n## Opening\n\nThe valve opens at 4 bar.\n\n"
    "## Closing\n\nThe valve closes by hand, because its spring is weak.\n",
    "handbook/prices.csv": "part,price\nvalve,40\npump,310\n",
    "agents/agents.yaml": "rag: {embedding: {provider: deterministic, dimensions: 16}}\n"
    "agents:\n  - id: guide\n    docs: {strategy: rag, sources: ['docs/*.md']}\n",
    "agents/docs/usage.md": "# Usage\n\nThe option --quiet prints errors only.\n",
}
COLORS = ("amber", "blue", "coral", "green", "indigo", "lilac", "olive", "purple", "teal", "violet")
ROOMS = {
    f"handbook/rooms/{color}-{floor}.md": f"# Room {color} {floor}\n\nThe {color} room on the "
    f"{floor} floor has {seats + 2 * number} seats.\n"
    for number, color in enumerate(COLORS)
    for floor, seats in (("lower", 4), ("middle", 30), ("upper", 60))
}
"""More documents than a question returns, so that other first hits are noticed."""
UPLOADS = {
    "handbook": ("contract.md", "# Contract\n\nThe contract ends in May.\n"),
    "guidelines": ("style.md", "# Style\n\nButtons are blue, and their labels are verbs.\n"),
}
CODE = {
    "composer.json": '{"require": {"laravel/framework": "^11.0"}}',
    "app/Models/Invoice.php": "<?php\nnamespace App\\Models;\n"
    "class Invoice extends \\Illuminate\\Database\\Eloquent\\Model\n{\n"
    "    public function lines() { return $this->hasMany(Line::class); }\n}\n",
    "app/Http/Controllers/InvoiceController.php": "<?php\nnamespace App\\Http\\Controllers;\n"
    "use App\\Models\\Invoice;\nclass InvoiceController\n{\n"
    "    public function show(Invoice $invoice) { return $invoice; }\n}\n",
    "app/Providers/RouteServiceProvider.php": "<?php\nnamespace App\\Providers;\n"
    "class RouteServiceProvider extends \\Illuminate\\Support\\ServiceProvider\n{\n"
    "    public function boot() { $this->loadRoutesFrom(base_path('routes/web.php')); }\n}\n",
    "routes/web.php": "<?php\nuse App\\Http\\Controllers\\InvoiceController;\n"
    "use Illuminate\\Support\\Facades\\Route;\n"
    "Route::get('/invoices/{invoice}', [InvoiceController::class, 'show'])"
    "->name('invoices.show');\n",
}
RUN_EVENTS = (
    {
        "id": "e1",
        "kind": "file_updated",
        "path": "app/Models/Invoice.php",
        "action": "round totals",
        "summary": "Totals of an invoice are rounded to whole cents now.",
        "at": "2026-11-24T01:00:00Z",
    },
    {"id": "e2", "kind": "final_summary", "summary": "Invoices are rounded everywhere."},
)
KEY = "sk-proj-" + "planted0123456789abcdefWXYZ"
PROJECT = "5b1e4c0e-8f1f-4a53-9a35-0d8a3f1f7c11"
FAILURE = "The migration fails because the column exists"
"""Of experience, whose embedder finds only equal texts."""


def fill(installation: Installation) -> None:
    """Create the tenants with their documents, and sync them."""
    home = installation.home
    (home / "tenants.yaml").write_text(TENANTS)
    for name, text in (FILES | ROOMS).items():
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text(text)
    MadeRepository(home / "shop").commit(CODE, "Show invoices")
    run(installation, "sync", "--all")
    for tenant, (name, text) in UPLOADS.items():
        file = home.parent / name
        file.write_text(text)
        run(installation, "uploads", "add", tenant, str(file))
    run(installation, "organizations", "put", "acme", "--guidelines")
    with serving(installation, Driver(installation)) as api:
        push(api)
        run(installation, "sync", "--all")


def ask(installation: Installation) -> list[Question]:
    """Ask the service; return the questions with its answers."""
    with serving(installation, Driver(installation)) as api:
        return [question.answered(api) for question in QUESTIONS]


def push(api: Api) -> None:
    """Push records and files as applications do."""

    def send(tenant: str, method: str, path: str, body: Any, **claims: Any) -> Any:
        token = api.token("chief", tenant, **{"role": "admin", **claims})
        answer = api.send(method, path, body, token=token)
        assert answer.is_success, (path, answer.text)
        return answer.json()

    pages = {"plans": ("ann", "The moon base opens in June."), "menu": ("bob", "Soup on Mondays.")}
    for page, (reader, text) in pages.items():
        send("pages", "PUT", f"/rag/tree/{page}", {"inherit": False, "read": [reader]})
        blocks = [{"block_id": f"{page}-1", "type": "paragraph", "text": text}]
        send("pages", "PUT", f"/rag/records/page/{page}", {"title": page, "blocks": blocks})
    send("guidelines", "PUT", "/api/projects/brand/keys/openai", {"key": KEY})
    send("memory", "PUT", "/api/projects/shop/runs/first", {"model": "gpt-4o"})
    lines = "\n".join(map(json.dumps, RUN_EVENTS))
    headers = {"Authorization": f"Bearer {api.token('chief', 'memory', role='admin')}"}
    path = "/api/projects/shop/runs/first/events"
    assert api.client.post(path, content=lines, headers=headers).is_success
    conductor = {"role": "orchestrator"}
    send("lessons", "PUT", f"/rag/experience/projects/{PROJECT}", {"name": "Harbor"}, **conductor)
    entry = {
        "entry_type": "failure_solution",
        "project_id": PROJECT,
        "agent_type": "backend-developer",
        "failure_description": FAILURE,
        "solution_steps": "Ask the schema before the column is added.",
        "success_verified": True,
    }
    send("lessons", "POST", "/rag/experience/entries", entry, **conductor)
    checkpoint = {"checkpoint_type": "phase_completion", "project_id": PROJECT}
    send("lessons", "POST", "/rag/experience/checkpoints", checkpoint, **conductor)


def run(installation: Installation, *arguments: str) -> str:
    """Run a command that must succeed; return its output."""
    done = installation.command(*arguments)
    assert done.code == 0, (arguments, done.out, done.err)
    return done.out


def _search(tenant: str, query: str, subject: str = "ann", **options: Any) -> Question:
    return Question(tenant, "POST", "/rag/query", {"query": query, **options}, subject=subject)


QUESTIONS = (
    _search("handbook", "when does the valve open?"),
    _search("handbook", "end of the contract"),
    _search("handbook", "price of a pump"),
    _search("handbook", "seats of the coral room on the upper floor", top_k=1),
    _search("handbook", "olive room", top_k=3),
    _search("handbook", "which room has 36 seats?", top_k=1),
    _search("guide", "# Usage\n\nThe option --quiet prints errors only."),
    _search("pages", "moon base"),
    _search("pages", "moon base", subject="bob"),
    _search("pages", "soup", subject="bob"),
    _search("memory", "where is an invoice shown?"),
    _search("memory", "rounded totals"),
    Question("memory", "GET", "/api/projects/shop/who-serves?route=invoices.show"),
    Question("memory", "GET", "/api/projects/shop/impact-of?symbol=Invoice"),
    Question("memory", "GET", "/api/projects/shop/history-of?path=app/Models/Invoice.php"),
    Question("guidelines", "POST", "/api/projects/brand/guidelines/context", {"task": "buttons"}),
    _search("guidelines", "buttons"),
    Question("guidelines", "GET", "/api/projects/brand/keys", role="admin"),
    Question(
        "lessons",
        "POST",
        "/rag/experience/failure",
        {"failure_description": FAILURE},
        role="orchestrator",
    ),
    Question("lessons", "GET", "/rag/experience/patterns", role="admin"),
)
