"""Routes, models and tables equal Django's own: of an example, of its own apps, and of RDMO.

RDMO is an independent application that is available as a package.
"""

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import django
import pytest
import rdmo

from rag_assets.systems.code_memory.derived.documents import derive_django_routes
from rag_assets.systems.code_memory.django.urlconf import DjangoRoutes, read_routes
from rag_assets.systems.code_memory.frameworks.definitions import get_framework
from rag_assets.systems.code_memory.frameworks.repository import File
from rag_assets.systems.code_memory.frameworks.tables import MappedTable, TableReader
from rag_assets.systems.code_memory.symbols.model import FileFacts
from tests.unit.systems.code_memory.django.api import API
from tests.unit.systems.code_memory.django.project import PROJECT, facts, is_suffixed, written

pytestmark = [pytest.mark.timeout(600), pytest.mark.long]

PACKAGE = Path(django.__file__).parent
OWN = {
    "site/settings.py": """
SECRET_KEY = "x"
INSTALLED_APPS = [
    "django.contrib.admin", "django.contrib.auth", "django.contrib.contenttypes",
    "django.contrib.sessions", "django.contrib.messages", "django.contrib.sites",
    "django.contrib.flatpages", "django.contrib.redirects", "django.contrib.admindocs",
]
ROOT_URLCONF = "site_urls"
SITE_ID = 1
DATABASES = {"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}}
""",
    "site_urls.py": "from django.urls import include, path\n\nurlpatterns = [\n"
    "    path('accounts/', include('django.contrib.auth.urls')),\n"
    "    path('pages/', include('django.contrib.flatpages.urls')),\n"
    "    path('docs/', include('django.contrib.admindocs.urls')),\n"
    "    path('i18n/', include('django.conf.urls.i18n')),\n]\n",
}


RDMO = {
    "config/settings.py": "from rdmo.core.settings import *\n\nSECRET_KEY = 'x'\n"
    "STATIC_ROOT = 'static'\n"
    "DATABASES = {'default': {'ENGINE': 'django.db.backends.sqlite3', 'NAME': ':memory:'}}\n",
    "config/urls.py": """
from django.contrib import admin
from django.urls import include, path

from rdmo.core.views import about, home

urlpatterns = [
    path("", home, name="home"),
    path("about/", about, name="about"),
    path("", include("rdmo.core.urls")),
    path("api/v1/", include("rdmo.core.urls.v1")),
    path("admin/", admin.site.urls),
]
""",
}
"""What who installs RDMO writes."""


def truth(root: Path, settings: str, *more: str) -> Any:
    script = Path(__file__).with_name("truth.py")
    environment = {**os.environ, "DJANGO_SETTINGS_MODULE": settings, "PYTHONPATH": str(root)}
    command = [sys.executable, str(script), *more]
    done = subprocess.run(
        command, env=environment, cwd=root, capture_output=True, text=True, check=False, timeout=300
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def own_apps() -> list[FileFacts]:
    paths = [PACKAGE / f"{name}__init__.py" for name in ("", "conf/", "db/")]
    for name in ("contrib", "conf/urls", "apps", "db/migrations"):
        paths += sorted((PACKAGE / name).rglob("*.py"))
    texts = {str(path.relative_to(PACKAGE.parent)): path.read_text("utf-8") for path in paths}
    return facts({**texts, **OWN})


@pytest.fixture(scope="module")
def example(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, list[FileFacts]]:
    root = tmp_path_factory.mktemp("project")
    written(root, PROJECT)
    return truth(root, "shop.settings"), facts(PROJECT)


@pytest.fixture(scope="module")
def django_itself(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, list[FileFacts]]:
    root = tmp_path_factory.mktemp("own")
    plain = {"site_settings.py": OWN["site/settings.py"], "site_urls.py": OWN["site_urls.py"]}
    written(root, plain)
    return truth(root, "site_settings"), own_apps()


@pytest.fixture(scope="module")
def application(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, list[FileFacts]]:
    root = tmp_path_factory.mktemp("rdmo")
    written(root, RDMO)
    package = Path(rdmo.__file__).parent
    paths = sorted(package.rglob("*.py"))
    texts = {str(path.relative_to(package.parent)): path.read_text("utf-8") for path in paths}
    return truth(root, "config.settings", "create"), facts({**texts, **RDMO})


def different_routes(
    django_view: Any, read: DjangoRoutes, but: str = ""
) -> Counter[tuple[str, str, str]]:
    """Return the routes that only one side has; conditional routes may be missing.

    A route with a format suffix, such as `.json`, repeats a view under the same name.
    """
    kept = [one for one in django_view if not is_suffixed(one[0])]
    wanted = Counter((p, n, _view(v)) for p, n, v, _ in kept if not but or not p.startswith(but))
    found: Counter[tuple[str, str, str]] = Counter()
    may: Counter[tuple[str, str, str]] = Counter()
    for route in read.routes:
        side = may if route.conditional else found
        side[route.pattern, route.name, _view(route.view.name)] += 1
    return (wanted - found - may) + (found - wanted)


def different_answers(django_view: Any, read: DjangoRoutes) -> list[object]:
    """Return routes to view classes that differ in their HTTP methods or handlers."""
    found = {
        (route.pattern, route.name): dict(route.view.actions)
        or {verb: verb.lower() for verb in route.view.methods}
        for route in read.routes
    }
    return [
        (pattern, name, answers, found[pattern, name])
        for pattern, name, _, answers in django_view
        if answers is not None and found.get((pattern, name), answers) != answers
    ]


def _view(name: str) -> str:
    """Return the last name of another package's view, which the package may re-export."""
    return name.rpartition(".")[2] if name.startswith(("django.", "rest_framework.")) else name


def tables_of(files: list[FileFacts]) -> dict[str, MappedTable]:
    reader = TableReader(get_framework("django"), [File(file) for file in files])
    return {table.name: table for table in reader.list_tables()}


@pytest.mark.slow
def test_the_examples_routes_are_the_resolvers(example: tuple[Any, list[FileFacts]]) -> None:
    django_view, files = example
    routes = read_routes(files)
    assert [route.pattern for route in routes.routes if route.conditional] == ["debug/"]
    # What a loop adds and what the admin makes is not stated by the text.
    known = [one for one in django_view["routes"] if one[0] not in {"x", "y"}]
    assert not different_routes(known, routes, but="admin/")
    assert not different_answers(known, routes)
    assert len(routes.routes) >= 20
    assert {one.reason for one in routes.unresolved} == {
        "the admin's own routes",
        "depends on `for`",
        "depends on `if`",
    }


@pytest.mark.slow
def test_routes_of_routers_are_the_resolvers(tmp_path: Path) -> None:
    written(tmp_path, API)
    django_view = truth(tmp_path, "site_api.settings")["routes"]
    routes = read_routes(facts(API))
    assert len(django_view) > 30
    assert not different_routes(django_view, routes)
    assert not different_answers(django_view, routes)
    assert not routes.unresolved


@pytest.mark.slow
def test_the_examples_tables_are_the_registrys(example: tuple[Any, list[FileFacts]]) -> None:
    django_view, files = example
    own = {k: v for k, v in django_view["models"].items() if not k.startswith("django.")}
    found = tables_of(files)
    models = {model.model: name for name, table in found.items() for model in table.models}
    assert models == {name.rpartition(".")[2]: table for name, (_, table, _, _) in own.items()}


@pytest.mark.slow
def test_djangos_own_apps_are_as_django_tells(django_itself: tuple[Any, list[FileFacts]]) -> None:
    django_view, files = django_itself
    routes = read_routes(files, "site_urls")
    assert len(routes.routes) >= 18
    assert not different_routes(django_view["routes"], routes)
    assert not different_answers(django_view["routes"], routes)
    assert len(django_view["tables"]) >= 9
    found = {name: {*table.columns} for name, table in tables_of(files).items()}
    wanted = {name: {*columns} for name, (columns, _) in django_view["tables"].items()}
    assert {name: found.get(name) for name in wanted} == wanted


@pytest.mark.slow
def test_real_routes_are_the_resolvers(application: tuple[Any, list[FileFacts]]) -> None:
    django_view, files = application
    routes = read_routes(files)
    assert len(routes.routes) > 150
    assert not different_routes(django_view["routes"], routes, but="admin/")
    assert not different_answers(django_view["routes"], routes)
    real = {one[0] for one in django_view["routes"]}
    conditional = {route.pattern for route in routes.routes if route.conditional}
    # Settings and installed packages decide which of these exist.
    assert conditional & real == {"account/^login/", "account/^logout/"}
    assert conditional - real == {
        *("account/^shibboleth/login/", "account/^shibboleth/logout/", "account/^token/$"),
        *("account/^terms-of-use/$", "account/^terms-of-use/accept/$", "api/v1/"),
        *("api/v1/redoc/", "api/v1/schema/", "api/v1/swagger/"),
    }


@pytest.mark.slow
def test_unresolved_routes_have_their_cause(application: tuple[Any, list[FileFacts]]) -> None:
    unresolved = derive_django_routes(application[1]).unresolved
    accounts = "rdmo/accounts/urls/__init__.py"
    assert {one.about for one in unresolved} == {"routes"}
    assert {(one.path, one.reason) for one in unresolved} == {
        ("config/urls.py", "the admin's own routes"),
        # Settings decide which routes of accounts exist, and whether the API is described.
        (accounts, "depends on `if`"),
        (accounts, "a module in a different package: allauth.urls"),
        ("rdmo/core/urls/v1/__init__.py", "depends on `if`"),
    }


@pytest.mark.slow
def test_real_tables_are_the_databases(application: tuple[Any, list[FileFacts]]) -> None:
    django_view, files = application
    apps = {app for name, (app, *_) in django_view["models"].items() if name.startswith("rdmo.")}
    made = {k: v for k, v in django_view["columns"].items() if k.partition("_")[0] in apps}
    assert len(made) > 60
    assert {
        name: {column.name: column.is_nullable for column in table.columns.values()}
        for name, table in tables_of(files).items()
    } == made
