"""Frameworks: routes, events, and descriptions of a tenant's own."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from time import process_time
from typing import Any

import pytest

from rag_assets.common.errors import ConfigurationError
from rag_assets.ingest.chunking.chunk_set import chunk_document, locate_facts
from rag_assets.ingest.parsing.masking import mask_document
from rag_assets.ingest.parsing.model import Block, ParsedText
from rag_assets.pipeline.recipes import compute_config_key
from rag_assets.systems.code_memory.derived.documents import (
    derive_documents,
    find_source_types,
    imports_django,
    keep_deciding_facts,
    list_deciding_facts,
    list_languages_to_read,
    list_signs,
)
from rag_assets.systems.code_memory.derived.model import Derivation
from rag_assets.systems.code_memory.frameworks.definitions import load_built_in_frameworks
from rag_assets.systems.code_memory.frameworks.facts import list_framework_facts
from rag_assets.systems.code_memory.frameworks.routers import MAX_PREFIXES
from rag_assets.systems.code_memory.frameworks.statements import GRAMMARS
from rag_assets.systems.code_memory.reading import read_code
from rag_assets.systems.code_memory.relations.relations import build_relations
from rag_assets.systems.code_memory.symbols.model import FileFacts
from rag_assets.systems.code_memory.symbols.naming import (
    NameStyle,
    get_name_style,
    resolve_spelling,
)
from rag_assets.tenants.model import Tenant
from tests.rules import shared_scanner
from tests.unit.privacy.secrets import planted

SAMPLES = Path(__file__).parent / "samples"
LANGUAGES = {
    ".cs": "csharp", ".ex": "elixir", ".exs": "elixir", ".go": "go", ".java": "java",
    ".js": "javascript", ".kt": "kotlin", ".php": "php", ".prisma": "prisma", ".py": "python",
    ".rb": "ruby", ".rs": "rust", ".svelte": "svelte", ".swift": "swift", ".ts": "typescript",
    ".tsx": "typescript", ".vue": "vue", ".yml": "yaml",
}  # fmt: skip
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
        led = [one.target for one in document.statements if one.kind == "routes_to"]
        led += [one.source for one in document.statements if one.kind == "maps_to"]
        led += [f"calls {one.target}" for one in document.statements if one.kind == "calls"]
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


@pytest.mark.parametrize("framework", [one.name for one in load_built_in_frameworks()])
def test_sample_of_framework_gives_exact_types(framework: str) -> None:
    path = SAMPLES / framework / "types.txt"
    expected = path.read_text("utf-8").splitlines() if path.exists() else []
    files = facts_of(sample_of(framework))
    types = find_source_types(files)
    assert [f"{path} {symbol} {types[path, symbol]}" for path, symbol in sorted(types)] == expected
    if any(map(imports_django, files)):
        return  # Its interpreter reads all facts.
    kept = [replace(o, facts=keep_deciding_facts(o.facts, o.language)) for o in files]
    assert find_source_types(kept) == types
    for file, reduced in zip(files, kept, strict=True):
        if file.language not in {"php", "python"}:
            both = (list_deciding_facts(one.facts, one.language) for one in (file, reduced))
            assert next(both) == next(both)


def test_own_framework_gives_types() -> None:
    own = json.dumps(
        [
            {
                "name": "jobs",
                "languages": ["ruby"],
                "types": {"bases": {"Shop::Task": "job"}, "folders": {"domain": "service"}},
            }
        ]
    )
    files = {
        "lib/a.rb": "class Base < Shop::Task\nend\nclass CleanUp < Base\nend\n",
        "lib/domain/b.rb": "class Prices\nend\n",
        "spec/domain/c.rb": "class Fake\nend\n",
    }
    assert find_source_types(facts_of(files, own), own) == {
        ("lib/a.rb", "Base"): "job",
        ("lib/a.rb", "CleanUp"): "job",
        ("lib/domain/b.rb", "Prices"): "service",
    }
    assert find_source_types(facts_of(files)) == {}


@pytest.mark.parametrize(
    ("after", "same"),
    [
        ("\n\n@Service\nclass A { void f() { g(2); } }", True),
        ("@Service\nclass A { int f; void f() {} }", True),
        ("@Service\nclass B { void f() {} }", False),
        ("class A { void f() {} }", False),
        ("@Service\nclass A extends B { void f() {} }", False),
        ("@Service\nclass A { @EventListener void f() {} }", False),
        ('@Service\nclass A { @GetMapping("/x") void f() {} }', False),
    ],
)
def test_only_clues_to_types_decide(after: str, *, same: bool) -> None:
    texts = ("@Service\nclass A { void f() {} }", after)
    [former], [newer] = (facts_of({"A.java": text}) for text in texts)
    decisions = [list_deciding_facts(one.facts, "java") for one in (former, newer)]
    assert (decisions[0] == decisions[1]) is same


@pytest.mark.parametrize(
    ("one", "other"), [*pairwise([*(o.name for o in load_built_in_frameworks()), "actix"])]
)
def test_files_in_languages_that_are_not_read_change_no_document(one: str, other: str) -> None:
    names = (one, other)
    samples = {f"{name}/{path}": t for name in names for path, t in sample_of(name).items()}
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
    assert names(derive({"src/app.js": text})) == []
    route = "const express = require('express')\nconst app = express()\napp.get('/x', handler)\n"
    assert names(derive({"src/app.js": route})) == ["route:GET /x"]
    assert names(derive({"test/app.js": route})) == [], "a route of a test"


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
    text = f"{head}{mounts}router.get('/r%s', h)\n{tail}"
    routers = {f"src/f{n}.js": text % n for n in range(count)}
    functions = {
        f"lib/f{n}.js": "require('express')\nmodule.exports = (app) => {\n"
        + mounts.replace("router", "app")
        + f"app.get('/r{n}', h)\n}}\n"
        for n in range(count)
    }
    doubling = (f"const a{n} = `{f'${{a{n - 1}}}' * 20}`\n" for n in range(1, 30))
    constants = "const a0 = '/a'\n" + "".join(doubling)
    deep = f"{head}{constants}router.get(a29, h)\n"
    started = process_time()
    derivation = derive({**routers, **functions, "src/deep.js": deep})
    assert process_time() - started < HOSTILE_SECONDS
    assert len(derivation.documents) <= 2 * count * MAX_PREFIXES
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
    reason = "the path of a route (express) is computed"
    assert [*shown(derive({"src/main.ts": text}))] == [f"unresolved src/main.ts:5 {reason}"]


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


RESOURCES = {"calls": {"all": "many"}, "actions": {}}
TEXT = """from acme import web
@web.endpoint("GET", "/orders/{id}")
def show_order(id):
    return id
"""
ACME = {
    "name": "acme-web",
    "languages": ["python"],
    "markers": ["acme import web"],
    "routers": {"called": ["web"]},
    "routes": [{"annotations": {"endpoint": ""}, "method": "0", "path": "1"}],
}


def tenant(*frameworks: dict[str, Any], **more: Any) -> Tenant:
    config = {"id": "acme", "chunker": {"chunker": "code"}, "frameworks": frameworks, **more}
    return Tenant.from_config(config)


def test_routes_of_a_tenants_framework_have_documents() -> None:
    files = {"orders.py": TEXT}
    assert names(derive(files)) == []
    [document] = derive(files, tenant(ACME).own_frameworks_json).documents
    assert document.name == "route:GET /orders/{id}"
    assert "framework: acme-web" in document.lines
    leads = {(statement.kind, statement.target) for statement in document.statements}
    assert ("routes_to", "orders.show_order") in leads


def test_a_tenants_framework_replaces_the_built_in_one_of_its_name() -> None:
    files = {
        "app.py": "from flask import Flask\napp = Flask(__name__)\n\n"
        "@app.route('/orders')\ndef orders():\n    return []\n"
    }
    assert names(derive(files)) == ["route:GET /orders"]
    own = tenant({"name": "flask", "languages": ["python"], "markers": ["from flask"]})
    assert names(derive(files, own.own_frameworks_json)) == []


def test_a_tenants_texts_are_read_again_when_they_change_and_no_others_are() -> None:
    parsed = ParsedText(TEXT, (), "orders.py", "text/x-python")
    tenants = tenant(), tenant(ACME), tenant({**ACME, "markers": ["acme"]})
    keys = {compute_config_key(one, "deterministic") for one in tenants}
    assert len(keys) == len(tenants)
    sets = [
        chunk_document(
            parsed,
            one.chunk_parameters(source="repo", source_type="code", media_type="text/x-python"),
            parsed_digest="digest",
        )
        for one in tenants
    ]
    assert len({one.key for one in sets}) == len(sets)
    assert len({one.digest for one in sets}) == 1, "the passages are the same: no vector is made"
    prose = [
        tenant(*one, chunker={"chunker": "heading"}).chunk_parameters(
            source="files", source_type="file", media_type="text/markdown"
        )
        for one in ((), (ACME,))
    ]
    assert prose[0] == prose[1]


@pytest.mark.parametrize(
    ("frameworks", "message"),
    [
        ([{**ACME, "languages": ["cobol"]}], "'cobol' is not a supported language: use one of c"),
        ([{**ACME, "pages": [{"path": "("}]}], "'(' is not a valid regular expression"),
        ([{**ACME, "pages": [{"path": "/(.*)"}]}], "has no group `route`"),
        ([{**ACME, "resources": RESOURCES}], "`actions` has no entry"),
        ([{**ACME, "handlers": "spring"}], "frameworks.0.handlers"),
        ([{**ACME, "rout": []}], "frameworks.0.rout"),
        ([{**ACME, "name": "Acme Web"}], "frameworks.0.name"),
        ([ACME, ACME], "two frameworks named 'acme-web'"),
        ([{**ACME, "name": f"acme-{number}"} for number in range(21)], "frameworks"),
    ],
)
def test_a_mistake_in_a_framework_is_named(frameworks: list[dict[str, Any]], message: str) -> None:
    with pytest.raises(ConfigurationError) as error:
        tenant(*frameworks)
    assert message in error.value.message
    assert "acme" in error.value.message


TYPES = {"php": "text/x-php", "py": "text/x-python", "ts": "text/x-typescript"}


def events(path: str, text: str) -> set[tuple[str, str, str]]:
    """Return kind, source and event of each edge, with qualified sources."""
    suffix = path.rpartition(".")[2]
    facts = locate_facts(read_code(text, TYPES[suffix]).facts, text)
    style: NameStyle = "qualified" if suffix == "php" else get_name_style(path)
    edges = build_relations(facts, names=style).edges
    return {
        (edge.kind, resolve_spelling(edge.source, path) if edge.source else "", edge.target)
        for edge in edges
        if edge.target.startswith("event:")
    }


def test_emitter_of_javascript_meets_its_listeners() -> None:
    text = """
import { bus } from './bus'
export function pay() {
  bus.emit('order.paid', { id: 1 })
}
export function send() {}
bus.on('order.paid', send)
export class Mailer {
  start() {
    bus.once('order:shipped', (order) => this.mail(order))
  }
  @OnEvent('order.paid')
  handle() {}
}
"""
    assert events("src/orders.ts", text) == {
        ("fires", "src/orders#pay", "event:order.paid"),
        ("listens_to", "src/orders#send", "event:order.paid"),
        ("listens_to", "src/orders#Mailer.start", "event:order:shipped"),
        ("listens_to", "src/orders#Mailer.handle", "event:order.paid"),
    }


def test_hook_of_wordpress_meets_its_callbacks() -> None:
    text = """<?php
add_action('shop_order_paid', 'shop_send_mail');
function shop_send_mail() {}
class Stock
{
    public function boot()
    {
        add_filter('shop_order_total', [$this, 'addTaxes']);
        do_action('shop_order_paid', 1);
    }
    public function addTaxes($total) { return $total; }
}
"""
    assert events("shop.php", text) == {
        ("listens_to", "shop_send_mail", "event:shop_order_paid"),
        ("listens_to", "Stock::addTaxes", "event:shop_order_total"),
        ("fires", "Stock::boot", "event:shop_order_paid"),
    }


def test_event_of_laravel_meets_the_method_that_listens() -> None:
    text = """<?php
namespace Shop;
class Cart
{
    public function pay() { Event::dispatch('order.save.after', $this->order); }
}
class EventServiceProvider
{
    public function boot() { Event::listen('order.save.after', 'Shop\\Listeners\\Order@created'); }
}
"""
    assert events("src/Cart.php", text) == {
        ("fires", "Shop\\Cart::pay", "event:order.save.after"),
        ("listens_to", "Shop\\Listeners\\Order::created", "event:order.save.after"),
    }


def test_signal_of_python_meets_its_receivers() -> None:
    text = """
from django.dispatch import receiver
from shop.signals import order_paid
def pay(order):
    order_paid.send(sender=None, order=order)
@receiver(order_paid)
def mail(sender, **more):
    pass
def book(sender, **more):
    pass
order_paid.connect(book)
class Config:
    def ready(self):
        from .stock import reserve
        order_paid.connect(reserve)
"""
    assert events("shop/orders.py", text) == {
        ("fires", "shop.orders.pay", "event:order_paid"),
        ("listens_to", "shop.orders.mail", "event:order_paid"),
        ("listens_to", "shop.orders.book", "event:order_paid"),
        ("listens_to", "shop.stock.reserve", "event:order_paid"),
    }


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("src/a.ts", "button.on('click', save)\nstream.emit('error')\nbus.emit(name)\n"),
        ("src/a.ts", "store.dispatch(open())\nbus.emit(`order.${kind}`)\n"),
        ("a.py", "import socket\nfrom x import signals\ns.send(b'x')\ndb.connect('a.b')\n"),
        ("a.php", "<?php\n$bus->dispatch(new Paid()); Event::dispatch($name);\n"),
    ],
)
def test_words_of_the_platform_and_computed_names_are_no_events(path: str, text: str) -> None:
    assert events(path, text) == set()
