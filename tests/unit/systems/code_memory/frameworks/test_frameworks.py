"""Frameworks as data: the exact routes and tables of a small project of each framework."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from time import process_time

import pytest

from rag_assets.ingest.chunking.chunk_set import locate_facts
from rag_assets.ingest.parsing.masking import mask_document
from rag_assets.ingest.parsing.model import Block, ParsedText
from rag_assets.systems.code_memory.derived.documents import (
    derive_documents,
    list_languages_to_read,
    list_signs,
)
from rag_assets.systems.code_memory.derived.model import Derivation
from rag_assets.systems.code_memory.frameworks.definitions import load_built_in_frameworks
from rag_assets.systems.code_memory.frameworks.facts import list_framework_facts
from rag_assets.systems.code_memory.frameworks.routers import MOST_PREFIXES
from rag_assets.systems.code_memory.frameworks.statements import GRAMMARS
from rag_assets.systems.code_memory.reading import read_code
from rag_assets.systems.code_memory.symbols.model import FileFacts
from tests.rules import shared_scanner
from tests.unit.privacy.secrets import planted

SAMPLES = Path(__file__).parent / "samples"
LANGUAGES = {
    ".cs": "csharp",
    ".ex": "elixir",
    ".exs": "elixir",
    ".go": "go",
    ".java": "java",
    ".js": "javascript",
    ".php": "php",
    ".prisma": "prisma",
    ".py": "python",
    ".rb": "ruby",
    ".rs": "rust",
    ".swift": "swift",
    ".ts": "typescript",
    ".tsx": "typescript",
    ".yml": "yaml",
}
HOSTILE_SECONDS = 10.0
MOST_FACTS = 2_001


def facts_of(files: Mapping[str, str], own: str = "") -> list[FileFacts]:
    read = []
    for path, text in sorted(files.items()):
        language = LANGUAGES[Path(path).suffix]
        facts = tuple(locate_facts(read_code(text, f"text/x-{language}", own).facts, text))
        read.append(FileFacts(path, language, facts))
    return read


def derive(files: Mapping[str, str], own: str = "") -> Derivation:
    return derive_documents(facts_of(files, own), own)


def sample_of(framework: str) -> dict[str, str]:
    folder = SAMPLES / framework
    return {
        str(path.relative_to(folder)): path.read_text("utf-8")
        for path in folder.rglob("*")
        if path.suffix in LANGUAGES
    }


def names(derivation: Derivation) -> list[str]:
    return [document.name for document in derivation.documents]


def shown(derivation: Derivation) -> Iterator[str]:
    """Yield each document with its targets and requests, then the unresolved names."""
    for document in derivation.documents:
        first = document.statements[0]
        led = [
            statement.target for statement in document.statements if statement.kind == "routes_to"
        ]
        led += [
            statement.source for statement in document.statements if statement.kind == "maps_to"
        ]
        target = led[0] if led else "?"
        yield f"{document.name} -> {target} at {first.path}:{first.line_start}"
        for statement in document.statements:
            if statement.kind == "requests":
                place = f"{statement.path}:{statement.line_start}"
                yield f"{statement.source} requests {statement.target} at {place}"
    for why in derivation.unresolved:
        yield f"unresolved {why.path}:{why.line} {why.reason}"


@pytest.mark.parametrize("framework", [one.name for one in load_built_in_frameworks()])
def test_sample_of_framework_gives_exact_routes_and_tables(framework: str) -> None:
    expected = (SAMPLES / framework / "expected.txt").read_text("utf-8").splitlines()
    assert sorted(shown(derive(sample_of(framework)))) == expected


@pytest.mark.parametrize(
    ("one", "other"), [*pairwise([*(o.name for o in load_built_in_frameworks()), "actix"])]
)
def test_files_in_languages_that_are_not_read_change_no_document(one: str, other: str) -> None:
    samples = {
        f"{name}/{path}": text for name in (one, other) for path, text in sample_of(name).items()
    }
    files = facts_of({**samples, **{f"plain/file{suffix}": "" for suffix in LANGUAGES}})
    files.append(FileFacts("plain/file.lua", "lua", ()))
    languages = list_languages_to_read(frozenset().union(*map(list_signs, files)))
    assert (languages is None) is ("phpunit" in {one, other}), "its sample is one of Laravel"
    read = [file for file in files if languages is None or file.language in languages]
    assert (len(read) < len(files)) is (languages is not None)
    assert derive_documents(read) == derive_documents(files)


def test_clients_and_maps_are_no_routes() -> None:
    text = (
        "const express = require('express')\nconst app = express()\n"
        "axios.get('/orders')\ncache.get('/orders')\nrequest(app).post('/orders')\n"
    )
    assert [document.name for document in derive({"src/app.js": text}).documents] == []


def test_routes_in_tests_are_no_routes() -> None:
    text = "const express = require('express')\nconst app = express()\napp.get('/x', handler)\n"
    assert derive({"test/app.js": text}).documents == ()
    assert len(derive({"src/app.js": text}).documents) == 1


def test_router_that_a_package_defines_and_its_modules_import_has_its_mount() -> None:
    files = {
        "app/__init__.py": "from flask import Flask\napp = Flask(__name__)\n"
        "from app.auth import bp as auth_bp\napp.register_blueprint(auth_bp, url_prefix='/auth')\n",
        "app/auth/__init__.py": "from flask import Blueprint\nbp = Blueprint('auth', __name__)\n",
        "app/auth/routes.py": "from app.auth import bp\n@bp.route('/login')\ndef login(): ...\n",
    }
    assert names(derive(files)) == ["route:GET /auth/login"]


def test_router_that_a_factory_makes_is_passed_to_a_method() -> None:
    files = {
        "router/router.go": 'package router\nimport "github.com/labstack/echo/v4"\n'
        "func New() *echo.Echo {\n\te := echo.New()\n\treturn e\n}\n",
        "main.go": 'package main\nimport "shop/router"\nfunc main() {\n\tr := router.New()\n'
        '\tv1 := r.Group("/api")\n\th.Register(v1)\n}\n',
        "handler/routes.go": 'package handler\nimport "github.com/labstack/echo/v4"\n'
        "func (h *Handler) Register(v1 *echo.Group) {\n"
        '\tv1.GET("/users/:id", h.Show)\n}\n',
    }
    assert names(derive(files)) == ["route:GET /api/users/{id}"]


def test_prefix_that_two_settings_give_differently_is_computed() -> None:
    app = "from fastapi import FastAPI\nfrom conf import settings\napp = FastAPI()\n"
    app += "@app.get(settings.PREFIX + '/x')\ndef x(): ...\n"
    one = {"app.py": app, "conf.py": "class A:\n    PREFIX = '/v1'\n"}
    assert names(derive(one)) == ["route:GET /v1/x"]
    two = derive({**one, "other.py": "class B:\n    PREFIX = '/v2'\n"})
    assert names(two) == []
    assert [why.path for why in two.unresolved] == ["app.py"]


def test_router_whose_caller_passes_a_computed_one_is_computed() -> None:
    files = {
        "api/photos.go": 'package api\nimport "github.com/gin-gonic/gin"\n'
        'func GetPhoto(router *gin.RouterGroup) {\n\trouter.GET("/photos/:uid", show)\n}\n',
        "server/start.go": 'package server\nimport "github.com/gin-gonic/gin"\n'
        "var API *gin.RouterGroup\nfunc start(r *gin.Engine) {\n"
        "\tAPI = r.Group(conf.BaseUri(ApiUri))\n\tapi.GetPhoto(API)\n}\n",
    }
    derivation = derive(files)
    assert names(derivation) == []
    assert [why.path for why in derivation.unresolved] == ["api/photos.go"]


def test_host_and_credentials_are_no_part_of_a_route() -> None:
    text = "import express from 'express'\nconst app = express()\n"
    text += "app.get('https://root:hunter2@shop.test/orders', list)\n"
    derivation = derive({"src/app.ts": text})
    assert names(derivation) == ["route:GET /orders"]
    document = derivation.documents[0]
    assert "hunter2" not in "".join((*document.lines, *document.called, document.name))


def test_credential_in_an_argument_is_masked_before_it_is_read() -> None:
    text = "const express = require('express')\nconst app = express()\n"
    text += f"app.get('/hook/{planted.TOKENS['github']}', receive)\n"
    parsed = ParsedText(text, (Block("code", 0, len(text)),))
    safe = mask_document(parsed, shared_scanner()).text
    assert planted.TOKENS["github"] not in safe
    derivation = derive({"src/app.js": safe})
    assert len(derivation.documents) == 1
    assert planted.TOKENS["github"] not in repr(derivation)


@pytest.mark.parametrize("language", sorted(GRAMMARS))
@pytest.mark.parametrize(
    "part",
    [
        *("app.get('/x', ", "get(", "[Get(", "{", "scope do ", "app.get('/x', h)\n"),
        *("@Get('/a')\n", '#[get("/x")]\n', ".route('/x', get(h))", "a = a.Group('/x')\n"),
        *("x = f(x)\n", "'/a' + ", "`${a}", "f'{a}"),
    ],
)
def test_hostile_text_takes_bounded_time(language: str, part: str) -> None:
    text = part * (30_000 // len(part))
    started = process_time()
    facts, _ = list_framework_facts(text, language)
    derive_documents([FileFacts("a", language, tuple(locate_facts(facts, text)))])
    assert process_time() - started < HOSTILE_SECONDS
    assert len(facts) <= MOST_FACTS


def test_repository_whose_routers_all_mount_each_other_takes_bounded_time() -> None:
    count = 60
    mounts = "".join(f"router.use('/p{n}', require('./f{n}'))\n" for n in range(count))
    head = "const express = require('express')\nconst router = express.Router()\n"
    tail = "module.exports = router\n"
    routers = {
        f"src/f{n}.js": f"{head}{mounts}router.get('/r{n}', h)\n{tail}" for n in range(count)
    }
    functions = {
        f"lib/f{n}.js": "require('express')\nmodule.exports = (app) => {\n"
        + mounts.replace("router", "app")
        + f"app.get('/r{n}', h)\n}}\n"
        for n in range(count)
    }
    constants = "const a0 = '/a'\n" + "".join(
        f"const a{n} = `{f'${{a{n - 1}}}' * 20}`\n" for n in range(1, 30)
    )
    deep = f"{head}{constants}router.get(a29, h)\n"
    started = process_time()
    derivation = derive({**routers, **functions, "src/deep.js": deep})
    assert process_time() - started < HOSTILE_SECONDS
    assert len(derivation.documents) <= 2 * count * MOST_PREFIXES
    assert "src/deep.js" in {why.path for why in derivation.unresolved}


def test_routers_that_mount_each_other_end() -> None:
    text = (
        "const express = require('express')\nconst a = express.Router()\n"
        "const b = express.Router()\na.use('/b', b)\nb.use('/a', a)\na.get('/x', handler)\n"
    )
    assert derive({"src/app.js": text}).documents


def test_call_without_a_handler_is_no_route() -> None:
    text = """import express from "express";
const app = express();
app.get(Orders).run();
app.get("trust proxy");
app.get(ORDERS, show);
"""
    assert [*shown(derive({"src/main.ts": text}))] == [
        "unresolved src/main.ts:5 the path of a route (express) is computed"
    ]


def test_functions_named_like_methods_are_not_reported_outside_of_routers() -> None:
    router = """defmodule ShopWeb.Router do
  use ShopWeb, :router
  get @orders, OrderController, :index
  get "/", PageController, :index
end
"""
    orders = "defmodule Shop.Orders do\n  def get(order, key) do\n    get(order)\n  end\nend\n"
    found = [*shown(derive({"lib/router.ex": router, "lib/orders.ex": orders}))]
    assert [one for one in found if one.startswith("unresolved")] == [
        "unresolved lib/router.ex:3 the path of a route (phoenix) is computed"
    ]
