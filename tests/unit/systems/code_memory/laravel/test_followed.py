"""Relations of route actions to objects whose classes follow from several files."""

from __future__ import annotations

import random

import pytest

from rag_assets.systems.code_memory.derived.documents import derive_documents
from rag_assets.systems.code_memory.derived.model import DerivedDocument
from rag_assets.systems.code_memory.reading import read_code
from rag_assets.systems.code_memory.symbols.model import FileFacts
from tests.unit.systems.code_memory.laravel.routes_truth import PROVIDER

MODELS = {
    "app/Models/User.php": """<?php
namespace App\\Models;
class User extends \\Illuminate\\Foundation\\Auth\\User {
    public function currentTeam(): ?Team { return session('team'); }
    public function teams() { return $this->belongsToMany(Team::class); }
    public function rename() {}
}
""",
    "app/Models/Team.php": """<?php
namespace App\\Models;
class Team extends \\Illuminate\\Database\\Eloquent\\Model {
    use Closes;
    public function servers() { return $this->hasMany(Server::class); }
    public function owner() { return $this->belongsTo(User::class); }
    public static function mine() { return static::where('x', 1); }
}
""",
    "app/Models/Closes.php": """<?php
namespace App\\Models;
trait Closes { public function close() {} public function again() { return $this; } }
""",
    "app/Models/Server.php": """<?php
namespace App\\Models;
class Server extends \\Illuminate\\Database\\Eloquent\\Model {
    public function team() { return $this->belongsTo(Team::class); }
    public function scopeIdle($query) { return $query->where('idle', 1); }
    public function stop() {}
}
""",
    "app/Policies/ServerPolicy.php": """<?php
namespace App\\Policies;
class ServerPolicy {
    const STOP = 'force-stop';
    public function view() {}
    public function forceStop() {}
}
""",
    "app/Jobs/Sweep.php": """<?php
namespace App\\Jobs;
class Sweep {
    public static function of($team): self { return new self(); }
    public function handle() {}
}
""",
    "app/helpers.php": """<?php
function currentTeam() { return auth()->user()?->currentTeam() ?? null; }
function idleServers() { return currentTeam()->servers()->idle(); }
function endless() { return endless(); }
""",
    "app/Providers/RouteServiceProvider.php": PROVIDER,
    "app/Finder.php": """<?php
namespace App;
use App\\Models\\Server;
class Finder { public function find(): Server { return Server::query()->first(); } }
""",
}


def route_document(body: str, more: str = "", seed: int = 0) -> DerivedDocument:
    """Return the document of a route to an action; `more` are further members of the controller."""
    files = {
        **MODELS,
        "app/Http/Controllers/PanelController.php": (
            "<?php\nnamespace App\\Http\\Controllers;\nuse App\\Models\\{Server, Team};\n"
            "use App\\Policies\\ServerPolicy;\nuse App\\Jobs\\Sweep;\nuse App\\Finder;\n"
            f"class PanelController {{ public function show($id) {{ {body} }}\n{more} }}"
        ),
        "routes/web.php": (
            "<?php\nuse App\\Http\\Controllers\\PanelController;\n"
            "use Illuminate\\Support\\Facades\\Route;\n"
            "Route::get('/panel', [PanelController::class, 'show']);"
        ),
    }
    texts = [*files.items()]
    random.Random(seed).shuffle(texts)
    read = [FileFacts(path, "php", read_code(text, "text/x-php").facts) for path, text in texts]
    documents = derive_documents(read).documents
    return next(document for document in documents if document.name == "route:GET /panel")


def derived(body: str, more: str = "", seed: int = 0) -> list[tuple[str, str, str]]:
    """Return the inferred relations of an action and of methods next to it."""
    statements = route_document(body, more, seed).statements
    told = [one for one in statements if one.how == "inferred" and one.kind != "guarded_by"]
    assert all(one.source.startswith("App\\Http\\Controllers\\PanelController::") for one in told)
    return [(one.kind, one.source.partition("::")[2], one.target) for one in told]


@pytest.mark.parametrize(
    ("body", "called"),
    [
        ("currentTeam()->servers()->first()->stop();", ["Team::servers", "Server::stop"]),
        ("idleServers()->get()->each(fn ($one) => $one->stop());", ["Server::stop"]),
        ("foreach (idleServers()->get() as $one) { $one->stop(); }", ["Server::stop"]),
        ("Team::mine()->first()->servers()->idle()->get();", ["Server::scopeIdle"]),
        ("Team::find($id)->again()->servers()->first();", ["Closes::again", "Team::servers"]),
        ("Server::find($id)->team->close();", ["Closes::close"]),
        ("Server::find($id)->team->servers->first()->stop();", ["Server::stop"]),
        ("auth()->user()->teams()->first()->close();", ["User::teams", "Closes::close"]),
        ("$a = app(Finder::class)->find(); $a->stop();", ["Server::stop"]),
    ],
)
def test_calls_lead_through_helpers_relations_and_queries(body: str, called: list[str]) -> None:
    names = [target.rpartition("\\")[2] for kind, _, target in derived(body) if kind == "calls"]
    assert [one for one in called if one not in names] == []


@pytest.mark.parametrize(
    "body",
    [
        "endless()->stop();",
        "currentTeam()->servers()->count()->stop();",
        "currentTeam()->servers()->get()->pluck('x')->stop();",
        "currentTeam()->servers()->get()->concat(x())->first()->stop();",
        "nothing()->servers()->first()->stop();",
    ],
)
def test_an_unknown_step_ends_a_chain_of_calls(body: str) -> None:
    assert not [one for one in derived(body) if one[2].endswith("::stop")]


def test_models_are_used_where_a_relation_is_called_and_not_where_one_is_read() -> None:
    def used(body: str) -> set[str]:
        return {one[2].rpartition("\\")[2] for one in derived(body) if one[0] == "touches"}

    assert used("currentTeam()->servers()->first()->stop();") == {"Server"}
    # Its own file tells of Server, and the team is read as a property.
    assert used("Server::find($id)->team->close();") == set()
    assert used("auth()->user()->rename();") == set()
    assert used("$a = app(Finder::class)->find(); $a->stop();") == set()


def test_methods_of_its_own_class_are_followed_too() -> None:
    more = """
    private function found($id) { return $this->deeper($id); }
    private function deeper($id) { return Team::mine()->find($id); }
    private function unused() { currentTeam()->servers(); }"""
    told = derived("$this->found($id)->servers()->idle();", more)
    assert ("calls", "show", "App\\Models\\Team::servers") in told
    assert ("calls", "show", "App\\Models\\Server::scopeIdle") in told
    assert not [one for one in told if one[1] == "unused"]


def test_policies_are_asked_about_what_is_looked_up_and_by_constants() -> None:
    told = derived("$s = currentTeam()->servers()->first(); $this->authorize('view', $s);")
    assert ("authorizes", "show", "App\\Models\\Server") in told
    assert ("authorizes", "show", "App\\Policies\\ServerPolicy::view") in told
    told = derived("$s = Server::find($id); $this->authorize(ServerPolicy::STOP, $s);")
    assert ("authorizes", "show", "App\\Policies\\ServerPolicy::forceStop") in told
    told = derived("$this->authorize(ServerPolicy::GONE, Server::class);")
    assert "authorizes" not in {kind for kind, *_ in told}


def test_jobs_that_their_class_makes_are_dispatched() -> None:
    for body in ("dispatch(Sweep::of($id));", "$j = Sweep::of(1); dispatch($j);"):
        assert ("dispatches", "show", "App\\Jobs\\Sweep") in derived(body)
    told = derived("event(Server::find($id));")
    assert "dispatches" not in {kind for kind, *_ in told}, "a model is no event"


def test_the_order_of_files_changes_nothing_inferred() -> None:
    body = (
        "idleServers()->first()->stop(); currentTeam()->again()->servers()->first()->team->close();"
    )
    first = derived(body)
    assert len(first) > 3
    assert all(derived(body, seed=seed) == first for seed in range(1, 6))


@pytest.mark.parametrize(
    ("body", "tables"),
    [
        ("Server::query()->join('teams as t', 't.id', '=', 'x')->get();", {"teams"}),
        ("Server::leftJoin('teams', fn ($join) => $join->on('a', 'b'));", {"teams"}),
        ("$names = collect($x)->join(', ', ' and ');", set()),
        ("Server::query()->selectRaw('(select count(*) from `teams`) as n')->get();", {"teams"}),
        ("$q->whereRaw('extract(year from due) = 2024');", set()),
        ("DB::select('select trim(both from name) from teams');", {"teams"}),
    ],
)
def test_tables_of_joins_and_sql_are_stated(body: str, tables: set[str]) -> None:
    text = f"<?php\nuse Illuminate\\Support\\Facades\\DB;\nclass A {{ function f() {{ {body} }} }}"
    facts = read_code(text, "text/x-php").facts
    assert {fact.values["table"] for fact in facts if fact.kind == "queries_table"} == tables


def test_calls_of_inherited_methods_name_the_class_that_has_them() -> None:
    more = "private function sweep(Team $team) { $team->close(); }"
    statements = route_document("$this->sweep(Team::find($id));", more).statements
    [call] = [one for one in statements if (one.kind, one.how) == ("calls", "stated")]
    assert call.source.partition("::")[2] == "sweep"
    assert call.target == "App\\Models\\Closes::close"
    assert call.path == "app/Http/Controllers/PanelController.php"
