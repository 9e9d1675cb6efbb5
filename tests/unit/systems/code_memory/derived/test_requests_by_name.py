"""Requests of tests that name a route instead of writing its path."""

from __future__ import annotations

from collections.abc import Mapping

from tests.unit.systems.code_memory.frameworks.test_frameworks import derive


def requested(files: Mapping[str, str]) -> set[tuple[str, int]]:
    """Return the routes that tests request, each with the line of a request."""
    return {
        (document.name.removeprefix("route:"), statement.line_start)
        for document in derive(files).documents
        for statement in document.statements
        if statement.kind == "requests"
    }


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
    assert found == {("POST /orders", 5), ("GET /orders/{key}", 7)}


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
    assert requested(files) == {("ANY /api/orders/{pk}/", 5)}


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
