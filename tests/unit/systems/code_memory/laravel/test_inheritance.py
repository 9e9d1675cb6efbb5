"""Route actions that a controller inherits or gets from traits."""

from __future__ import annotations

from rag_assets.systems.code_memory.derived.laravel import derive
from rag_assets.systems.code_memory.laravel.classes import Inheritance
from rag_assets.systems.code_memory.laravel.reader import read
from rag_assets.systems.code_memory.symbols.model import FileFacts

TEXTS = {
    "bootstrap/app.php": """<?php
use Illuminate\\Foundation\\Application;
return Application::configure(basePath: dirname(__DIR__))
    ->withRouting(web: __DIR__.'/../routes/web.php')->create();
""",
    "routes/web.php": """<?php
use App\\Http\\Controllers\\{AdminController, LoginController};
use App\\Livewire\\{Bare, Settings};
use Illuminate\\Support\\Facades\\Route;
Route::get('own', [AdminController::class, 'OWN']);
Route::get('trait', [AdminController::class, 'reports']);
Route::get('parent', [AdminController::class, 'audit']);
Route::get('package', [LoginController::class, 'login']);
Route::get('settings', Settings::class);
Route::get('bare', Bare::class);
Route::get('gone', [App\\Gone::class, 'none']);
""",
    "app/Http/Controllers/AdminController.php": """<?php
namespace App\\Http\\Controllers;
class AdminController extends BaseController {
    use Reports;
    public function own(\\App\\Models\\Bill $bill) {
        if ($this->allowed($bill)) { $bill->pay(); $bill->save(); $this->reports(); }
    }
}
""",
    "app/Http/Controllers/BaseController.php": """<?php
namespace App\\Http\\Controllers;
class BaseController extends AdminController {
    use Checks;
    public function audit() {}
    function reports() {}
}
""",
    "app/Http/Controllers/Reports.php": """<?php
namespace App\\Http\\Controllers;
trait Reports { public function reports() {} }
""",
    "app/Http/Controllers/LoginController.php": """<?php
namespace App\\Http\\Controllers;
class LoginController { use \\Illuminate\\Foundation\\Auth\\AuthenticatesUsers; }
""",
    "app/Http/Controllers/Checks.php": (
        "<?php namespace App\\Http\\Controllers; trait Checks { protected function allowed() {} }"
    ),
    "app/Models/Bill.php": "<?php namespace App\\Models; class Bill { use Payable; }",
    "app/Models/Payable.php": "<?php namespace App\\Models; trait Payable { function pay() {} }",
    "app/Livewire/Settings.php": """<?php
namespace App\\Livewire;
class Settings extends Page { public function mount() {} }
""",
    "app/Livewire/Page.php": """<?php
namespace App\\Livewire;
class Page extends \\Livewire\\Component { public function render() {} }
""",
    "app/Livewire/Bare.php": """<?php
namespace App\\Livewire; class Bare extends \\Livewire\\Component {}""",
}
FILES = [FileFacts(path, "php", read(text).facts) for path, text in TEXTS.items()]


def test_a_route_leads_to_the_method_that_runs_and_to_the_controller_that_has_it() -> None:
    found = {
        document.name.removeprefix("route:GET /"): [
            s.target.removeprefix("App\\").removeprefix("Http\\Controllers\\")
            for s in document.statements
            if s.kind == "routes_to"
        ]
        for document in derive(FILES).documents
        if document.source_type == "route"
    }
    assert found == {
        "own": ["AdminController::own"],
        # Methods of traits come before those of parents.
        "trait": ["Reports::reports", "AdminController"],
        "parent": ["BaseController::audit", "AdminController"],
        "package": ["LoginController::login", "LoginController"],
        "settings": ["Livewire\\Settings::mount", "Livewire\\Page::render"],
        "bare": ["Livewire\\Bare::__invoke", "Livewire\\Bare"],
        "gone": ["Gone::none"],
    }


def test_circles_of_ancestors_end() -> None:
    above = Inheritance(FILES).iter_ancestors("App\\Http\\Controllers\\AdminController")
    names = [one.rpartition("\\")[2] for one in above]
    assert names == ["AdminController", "Reports", "BaseController", "Checks"]


def test_a_route_tells_the_inherited_methods_that_its_action_calls() -> None:
    documents = {document.name: document for document in derive(FILES).documents}
    found = [s for s in documents["route:GET /own"].statements if s.kind == "calls"]
    # The file of the action tells by itself what a trait of its class may have.
    assert {(s.target, s.evidence) for s in found} == {
        ("App\\Http\\Controllers\\Checks::allowed", ""),
        ("App\\Http\\Controllers\\Reports::reports", ""),
        ("App\\Models\\Payable::pay", ""),
    }
    assert {(s.source, s.path) for s in found} == {
        ("App\\Http\\Controllers\\AdminController::own", "app/Http/Controllers/AdminController.php")
    }
