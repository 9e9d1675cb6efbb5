"""Requests of code to the routes of a repository, by path and by name."""

from __future__ import annotations

from collections.abc import Mapping
from time import process_time

import pytest

from rag_assets.systems.code_memory.derived.documents import list_languages_to_read, list_signs
from rag_assets.systems.code_memory.derived.model import read_document, render_document
from rag_assets.systems.code_memory.derived.requested_routes import derive_operations
from rag_assets.systems.code_memory.symbols.names import iter_path_suffixes, iter_route_endings
from tests.unit.systems.code_memory.frameworks.test_frameworks import (
    HOSTILE_SECONDS,
    derive,
    facts_of,
)

DESCRIPTION = """
openapi: 3.0.1
servers:
  - url: http://localhost:9966/clinic/api
paths:
  /owners/{ownerId}:
    get:
      tags: [owners]
      operationId: getOwner
  /pets:
    post:
      tags: [pets]
      operationId: add_pet
    get:
      tags: [pets]
      operationId: listPets
"""
CONTROLLER = """
package clinic;
public class OwnerController implements OwnersApi {
    public Owner getOwner(Integer ownerId) { return service.find(ownerId); }
}
"""
MODEL = """
package clinic;
public class Pet {
    public Owner getOwner() { return owner; }
}
"""
HANDLERS = "package pets\n\nfunc (s *PetServer) AddPet(w http.ResponseWriter, r *http.Request) {}\n"
HOW = "convention"
TEST = """
package clinic;
class OwnerControllerTests {
    @Test
    void testGetOwner() throws Exception {
        mockMvc.perform(get("/api/owners/1"));
    }
}
"""


def requested(files: Mapping[str, str]) -> set[tuple[str, int]]:
    """Return the routes that tests request, each with the line of a request."""
    return {
        (document.name.removeprefix("route:"), statement.line_start)
        for document in derive(files).documents
        for statement in document.statements
        if statement.kind == "requests"
    }


def test_an_operation_leads_to_the_definition_of_its_id_in_any_language() -> None:
    files = {
        "src/main/resources/openapi.yml": DESCRIPTION,
        "src/main/java/clinic/OwnerController.java": CONTROLLER,
        "src/main/java/clinic/Pet.java": MODEL,
        "pets/server.go": HANDLERS,
    }
    found = {one.name: one for one in derive(files).documents}
    targets = {
        (name, statement.target, statement.how, statement.line_start)
        for name, document in found.items()
        for statement in document.statements
        if statement.kind == "routes_to"
    }
    # Nothing implements listPets, and Pet.getOwner is not named after the operation's path.
    assert targets == {
        ("route:GET /clinic/api/owners/{ownerId}", "clinic.OwnerController.getOwner", HOW, 7),
        ("route:POST /clinic/api/pets", "pets#PetServer.AddPet", HOW, 11),
    }
    called = found["route:GET /clinic/api/owners/{ownerId}"].called
    assert {"route /api/owners/{}", "route get /owners/{}", "route getowner"} <= {*called}
    for document in found.values():
        (declared, *_) = read_document(render_document(document)).facts
        assert declared.values["called"] == [*document.called]


def test_a_test_may_leave_out_the_prefix_of_the_server() -> None:
    files = {
        "openapi.yml": DESCRIPTION,
        "src/main/java/clinic/OwnerController.java": CONTROLLER,
        "src/test/java/clinic/OwnerControllerTests.java": TEST,
    }
    assert requested(files) == {("GET /clinic/api/owners/{ownerId}", 6)}


def test_an_optional_format_belongs_to_no_other_route() -> None:
    routes = """<?php
use Illuminate\\Support\\Facades\\Route;
Route::get('/rest/ping{format?}', PingController::class);
Route::get('/rest/stream{format?}', StreamController::class);
"""
    test = """<?php
class RestTest extends TestCase
{
    public function testPing() { $this->get('/rest/ping.view?u=me'); }
    public function testStream() { $this->getJson('/rest/stream'); }
    public function testAny($method) { $this->get('/rest/' . $method); }
}
"""
    app = "<?php return Application::configure()->withRouting(web: __DIR__.'/../routes/web.php');"
    files = {"bootstrap/app.php": app, "routes/web.php": routes, "tests/RestTest.php": test}
    assert requested(files) == {("GET /rest/ping{format?}", 4), ("GET /rest/stream{format?}", 5)}


def test_a_route_in_the_code_replaces_its_description() -> None:
    app = """
from fastapi import FastAPI
app = FastAPI()
@app.get("/owners/{owner_id}")
def getOwner(owner_id: int): ...
"""
    found = derive({"openapi.yml": DESCRIPTION, "app/main.py": app}).documents
    assert [one.name for one in found] == ["route:GET /owners/{owner_id}"]


def test_routes_with_only_their_last_part_in_common_are_not_the_same() -> None:
    app = """
from fastapi import FastAPI
app = FastAPI()
@app.post("/stables/pets")
def add_stabled(): ...
"""
    found = derive({"openapi.yml": DESCRIPTION, "app/main.py": app, "pets/server.go": HANDLERS})
    names = {document.name for document in found.documents}
    assert names == {"route:POST /stables/pets", "route:POST /clinic/api/pets"}


def test_names_that_many_definitions_have_lead_nowhere() -> None:
    description = DESCRIPTION.replace("getOwner", "get").replace("[owners]", "[]")
    classes = "".join(f"class C{n} {{ void get() {{}} }}\n" for n in range(4))
    files = {"openapi.yml": description, "src/All.java": f"package all;\n{classes}"}
    assert derive(files).documents == ()


def test_many_operations_of_one_name_cost_little() -> None:
    paths = "".join(f"  /p{n}:\n    get:\n      operationId: get\n" for n in range(1_000))
    text = "".join(f"class C{n} {{ void get() {{}} }}\n" for n in range(2_000))
    files = facts_of({"api.yml": f"openapi: 3.0.1\npaths:\n{paths}", "All.java": text})
    started = process_time()
    assert [*derive_operations(files, ())] == []
    assert process_time() - started < HOSTILE_SECONDS


def test_a_description_makes_files_of_every_language_count() -> None:
    described, plain = facts_of({"openapi.yml": DESCRIPTION, "settings.yml": "a: 1\n"})
    assert list_languages_to_read(frozenset(list_signs(described))) is None
    assert list_languages_to_read(frozenset(list_signs(plain))) is not None


@pytest.mark.parametrize(
    ("path", "ends"),
    [
        ("/clinic/api/owners/{id}", ["/clinic/api/owners/{}", "/api/owners/{}", "/owners/{}"]),
        ("/{tenant}/owners", ["/{}/owners", "/owners"]),
        ("/", ["/"]),
        ("/a/b/c/d/e", ["/a/b/c/d/e", "/b/c/d/e", "/c/d/e", "/d/e"]),
    ],
)
def test_ends_of_a_path_start_with_a_literal_part(path: str, ends: list[str]) -> None:
    assert [*iter_path_suffixes(path)] == ends


def test_a_requested_path_may_have_the_prefix_of_a_server() -> None:
    assert [*iter_route_endings("GET /api/v2/owners/5")] == ["get /v2/owners/{}", "get /owners/{}"]
    endings = ["/articles/my-first", "/articles/{}", "/my-first"]
    assert [*iter_route_endings("/api/articles/my-first")] == endings
    assert [*iter_route_endings("owners.show")] == []


def test_name_of_a_flask_route_is_its_endpoint_or_its_function() -> None:
    app = """
from flask import Flask
app = Flask(__name__)
@app.route("/orders", methods=["POST"])
def make_order(): ...
@app.route("/orders/<int:key>", endpoint="order")
def show(key): ...
"""
    test = """
from flask import url_for
def test_orders(client):
    client.post(url_for("shop.make_order"))
    url = url_for("order", key=1)
    client.get(url)
    client.get(url_for("missing"))
"""
    found = requested({"shop/app.py": app, "tests/test_app.py": test})
    assert found == {("POST /orders", 4), ("GET /orders/{key}", 6)}


def test_name_of_a_django_route_is_reversed_with_its_namespace() -> None:
    files = {
        "manage.py": "",
        "shop/urls.py": """
from django.urls import path
from shop import views
app_name = "shop"
urlpatterns = [path("orders/<int:pk>/", views.show, name="order")]
""",
        "shop/views.py": "from django.http import HttpResponse\ndef show(request, pk): ...\n",
        "site/urls.py": (
            "from django.urls import include, path\n"
            "urlpatterns = [path('api/', include('shop.urls'))]\n"
        ),
        "tests/test_shop.py": """
from django.urls import reverse
def test_show(client):
    client.get(reverse("shop:order", args=[1]))
""",
    }
    assert requested(files) == {("ANY /api/orders/{pk}/", 4)}


def test_helpers_and_actions_of_rails_lead_to_their_routes() -> None:
    files = {
        "config/routes.rb": (
            "Rails.application.routes.draw do\n  resources :orders do\n"
            "    member do\n      post :pay\n    end\n  end\nend\n"
        ),
        "spec/requests/orders_spec.rb": (
            "describe 'orders' do\n  it 'works' do\n    get orders_path\n"
            "    get edit_order_path(order)\n    post pay_order_path(order)\n"
            "    get missing_path\n  end\nend\n"
        ),
        "spec/controllers/orders_controller_spec.rb": (
            "describe OrdersController do\n  it 'shows' do\n"
            "    get :show, params: {id: 1}\n  end\nend\n"
        ),
    }
    assert requested(files) == {
        ("GET /orders", 3),
        ("GET /orders/{id}/edit", 4),
        ("POST /orders/{id}/pay", 5),
        ("GET /orders/{id}", 3),
    }


def test_request_under_a_prefix_of_the_server_reaches_the_route_without_it() -> None:
    app = """
from flask import Flask
app = Flask(__name__)
@app.route("/orders/<int:key>")
def show(key): ...
@app.route("/api/<name>")
def named(name): ...
"""
    test = """
def test_orders(client):
    client.get("/api/v1/orders/1")
    client.get("/api/orders")
    client.get("/shop/orders/1")
"""
    found = requested({"shop/app.py": app, "tests/test_app.py": test})
    assert found == {("GET /orders/{key}", 3), ("GET /api/{name}", 4)}
