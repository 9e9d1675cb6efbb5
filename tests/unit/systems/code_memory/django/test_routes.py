"""Routes that the example's resolver does not cover: methods, routers, roots, circles."""

import pytest

from rag_assets.systems.code_memory.django.urlconf import (
    build_path_template,
    list_parameters,
    read_routes,
)
from rag_assets.systems.code_memory.django.views import DjangoRoute
from tests.unit.systems.code_memory.django.project import PROJECT, facts

API = {
    "api/__init__.py": "",
    "api/models.py": "from django.db import models\n\nclass Book(models.Model): pass\n",
    "api/views.py": """
from rest_framework import mixins, viewsets
from rest_framework.decorators import action, api_view
from .models import Book
class Keyed:
    lookup_field = "slug"
    lookup_value_regex = "[a-z]+"
class Books(Keyed, viewsets.ModelViewSet):
    queryset = Book.objects.filter(gone=False)
    @action(detail=True, methods=["post"], url_path="lend-out")
    def lend(self, request, slug): ...
    @lend.mapping.delete
    def take_back(self, request, slug): ...
    @action(detail=False)
    def newest(self, request): ...
class Shelves(mixins.ListModelMixin, viewsets.GenericViewSet):
    pass
@api_view(["GET", "PUT"])
def status(request): ...
""",
    "api/urls.py": """
from django.urls import include, path
from rest_framework import routers
from . import views
router = routers.DefaultRouter()
router.register(r"books", views.Books)
router.register("shelves", views.Shelves, basename="shelf")
router.register(computed(), views.Shelves, basename="x")
plain = routers.SimpleRouter(trailing_slash=False)
plain.register("books", views.Books, "volume")
app_name = "api"
urlpatterns = [
    path("v1/", include(router.urls)),
    path("status/", views.status),
    path("bulk/", views.Books.as_view({"get": "list", "delete": "clear"}), name="bulk"),
]
urlpatterns += plain.urls
""",
}


def by_name(routes: tuple[DjangoRoute, ...]) -> dict[str, DjangoRoute]:
    return {route.name: route for route in routes}


def test_routers_make_the_routes_of_their_viewsets() -> None:
    found = read_routes(facts(API))
    routes = by_name(found.routes)
    lookup = "(?P<slug>[a-z]+)"
    assert {name: route.pattern for name, route in routes.items()} == {
        "book-list": "v1/^books/$",
        "book-newest": "v1/^books/newest/$",
        "book-detail": f"v1/^books/{lookup}/$",
        "book-lend": f"v1/^books/{lookup}/lend-out/$",
        "shelf-list": "v1/^shelves/$",
        "api-root": "v1/",
        "": "status/",
        "bulk": "bulk/",
        "volume-list": "^books$",
        "volume-newest": "^books/newest$",
        "volume-detail": f"^books/{lookup}$",
        "volume-lend": f"^books/{lookup}/lend-out$",
    }
    assert routes["book-lend"].view.actions == (("POST", "lend"), ("DELETE", "take_back"))
    assert build_path_template(routes["book-lend"].pattern) == "v1/books/{slug}/lend-out/"
    assert routes["book-list"].view.actions == (("GET", "list"), ("POST", "create"))
    assert routes["shelf-list"].view.methods == ("GET",)
    assert routes["bulk"].view.actions == (("GET", "list"), ("DELETE", "clear"))
    assert routes[""].view.methods == ("GET", "PUT")
    assert routes["book-list"].view.name == "api.views.Books"
    assert [one.reason for one in found.unresolved] == ["a computed registration"]


def test_methods_parameters_and_evidence_are_told() -> None:
    routes = by_name(read_routes(facts(PROJECT)).routes)
    assert routes["home"].view.methods == ("GET", "POST")
    assert routes["closed"].view.methods == ("GET", "POST")
    assert routes["closed"].view.name == "billing.views.invoices.InvoiceList"
    detail = routes["second:detail"]
    assert build_path_template(detail.pattern) == "second/{pk}/{part}/"
    assert list_parameters(detail.pattern) == (("pk", "int"), ("part", "slug"))
    assert detail.view.methods == ("GET",)
    quoted = [PROJECT[one.path][one.start : one.end] for one in detail.evidence]
    assert quoted[0].startswith('path("second/", include(')
    assert quoted[1].startswith('path("<int:pk>/')
    assert build_path_template(routes["old"].pattern) == "old/{year}/(?:x/)?"


def test_without_settings_the_lists_that_no_other_includes_are_roots() -> None:
    files = {
        "a/__init__.py": "",
        "a/urls.py": "from django.urls import include, path\nimport a.views\n"
        "urlpatterns = [path('x/', include('a.b')), path('y', a.views.y)]\n",
        "a/b.py": "from django.urls import path\nurlpatterns = [path('z', z)]\n",
        "a/views.py": "def y(request): ...\n",
    }
    assert [route.pattern for route in read_routes(facts(files)).routes] == ["x/z", "y"]


def test_registrations_that_cannot_be_read_are_reported() -> None:
    text = """
from rest_framework.routers import DefaultRouter, SimpleRouter
from rest_framework_extensions.routers import ExtendedSimpleRouter
from . import views
class Own(SimpleRouter):
    def get_urls(self):
        return []
own = Own()
own.register("books", views.Books, "own")
router = DefaultRouter()
kept = router.register("shelves", views.Shelves, basename="shelf")
kept.register("books", views.Books)
extended = ExtendedSimpleRouter()
top = extended.register("shelves", views.Shelves, "top")
top.register("books", views.Books, "in", parents_query_lookups=names())
if FLAG:
    extended.register("more", views.Shelves, "more")
urlpatterns = [*own.urls, *router.urls, *extended.urls]
"""
    found = read_routes(facts({**API, "api/urls.py": text}), "api.urls")
    routes = by_name(found.routes)
    names = {name for name in routes if not name.startswith("own-")}
    assert names == {"shelf-list", "api-root", "top-list", "more-list"}
    assert [name for name, route in routes.items() if route.conditional] == ["more-list"]
    assert [one.reason for one in found.unresolved] == [
        "a router class that overrides how routes are created",
        "a computed registration",
        "a computed registration",
        "depends on `if`",
    ]
    quoted = [text[one.evidence.start : one.evidence.end] for one in found.unresolved]
    assert quoted[0] == "Own()"
    assert quoted[1] == 'kept.register("books", views.Books)'


def test_texts_of_constants_are_put_together() -> None:
    text = """
from django.urls import path, re_path
from c import API, KEY
BASE = "base"
OTHER = "a" if API else "b"
urlpatterns = [
    path(f"{API}/users/", v, name=f"{BASE}-users"),
    re_path(rf"^{KEY}\\d{{4}}$", v),
    path(API + "/" + BASE, v),
    path(f"{OTHER}/x", v),
    path(f"{API!r}/x", v),
    path(f"{made()}/x", v),
]
"""
    constants = "from django.urls import path\nAPI = 'api/v1'\nKEY = '(?P<key>[a-z]+)/'\n"
    found = read_routes(facts({"u.py": text, "c.py": constants}), "u")
    assert [(route.pattern, route.name) for route in found.routes] == [
        ("api/v1/users/", "base-users"),
        (r"^(?P<key>[a-z]+)/\d{4}$", ""),
        ("api/v1/base", ""),
    ]
    assert [one.reason for one in found.unresolved] == ["a computed path"] * 3


def test_the_routes_of_another_packages_router_are_reported() -> None:
    text = """
from rest_framework_nested import routers
from . import views
outer = routers.SimpleRouter()
outer.register("books", views.Books)
inner = routers.NestedSimpleRouter(outer, "books", lookup="book")
inner.register("shelves", views.Shelves)
urlpatterns = [*outer.urls, *inner.urls]
"""
    found = read_routes(facts({**API, "api/urls.py": text}), "api.urls")
    assert {route.pattern for route in found.routes if route.name == "book-list"} == {"^books/$"}
    assert not [route for route in found.routes if "shelves" in route.pattern]
    assert [one.reason for one in found.unresolved] == ["routes that an object returns"]


def test_a_route_under_a_condition_is_conditional_and_in_a_loop_unknown() -> None:
    text = """
from django.urls import include, path
urlpatterns = [path("a", v)]
if FIRST:
    urlpatterns += [path("b", v), path("in/", include(("inner", "n")))]
else:
    urlpatterns.append(path("c", v))
try:
    import other
    urlpatterns += [path("d", v)]
except ImportError:
    pass
for word in words:
    urlpatterns.append(path("e", v))
while more():
    urlpatterns += [path("f", v)]
"""
    inner = "from django.urls import path\nurlpatterns = [path('x', v, name='x')]\n"
    found = read_routes(facts({"u.py": text, "inner.py": inner}), "u")
    told = [(route.pattern, route.name) for route in found.routes]
    assert told == [("a", ""), ("b", ""), ("in/x", "n:x"), ("d", ""), ("c", "")]
    assert [route.pattern for route in found.routes if not route.conditional] == ["a"]
    reasons = sorted(one.reason for one in found.unresolved)
    assert reasons == [f"depends on `{word}`" for word in ("for", "if", "if", "try", "while")]


def test_a_view_of_an_object_is_reported_as_computed() -> None:
    views = """
from django.views import View
class Plain(View):
    def get(self, request): ...
class Kept:
    urls = ()
kept = Kept()
other = kept
same = Plain
"""
    text = """
from django.urls import path
from v import kept, other, same
urlpatterns = [
    path("a", kept.as_view("a"), name="a"),
    path("b", other.answer),
    path("c/", kept.urls),
    path("d", same.as_view()),
]
"""
    found = read_routes(facts({"u.py": text, "v.py": views}), "u")
    told = [(route.pattern, route.view.name, route.view.methods) for route in found.routes]
    assert told == [("a", "", ()), ("b", "", ()), ("d", "v.Plain", ("GET",))]
    assert [one.reason for one in found.unresolved] == [
        "a computed view",
        "a computed view",
        "routes that an object returns",
    ]


def test_a_viewset_of_users_has_the_name_of_their_model() -> None:
    text = """
from django.contrib.auth import get_user_model
from rest_framework import routers, viewsets
class People(viewsets.ReadOnlyModelViewSet):
    queryset = get_user_model().objects.all()
router = routers.SimpleRouter()
router.register("people", People)
urlpatterns = router.urls
"""
    settings = "INSTALLED_APPS = []\nAUTH_USER_MODEL = 'core.Person'\n"
    assert set(by_name(read_routes(facts({"u.py": text}), "u").routes)) == {
        "user-list",
        "user-detail",
    }
    own = read_routes(facts({"u.py": text, "s.py": settings}), "u")
    assert set(by_name(own.routes)) == {"person-list", "person-detail"}


def test_circles_end() -> None:
    text = (
        "from django.urls import include, path\n"
        "urlpatterns = [path('a/', include('u')), path('b', v)] + urlpatterns\n"
    )
    found = read_routes(facts({"u.py": text}), "u")
    assert [route.pattern for route in found.routes] == ["b"]
    bases = "from x import *\nfrom v import A\n"
    bases += "class A(A): pass\nclass B(C): pass\nclass C(B): pass\n"
    view = "from django.urls import path\nfrom v import B\nurlpatterns = [path('b', B.as_view())]\n"
    found = read_routes(facts({"u.py": view, "v.py": bases}), "u")
    assert [route.view.name for route in found.routes] == ["v.B"]


def test_a_computed_registration_is_reported_with_its_place() -> None:
    text = """
from django.urls import include, path
from other import urls as outside
urlpatterns = [
    path(prefix() + "x", v),
    path("a/", include(names())),
    path("b/", include("elsewhere.urls")),
    path("c/", lambda request: None),
    *[path(word, v) for word in words],
    make(),
]
"""
    found = read_routes(facts({"u.py": text}), "u")
    assert [(route.pattern, route.view.name) for route in found.routes] == [("c/", "")]
    assert [one.reason for one in found.unresolved] == [
        "a computed path",
        "a list that a function returns: names",
        "a module in a different package: elsewhere.urls",
        "a computed view",
        "computed: comprehension",
        "a list that a function returns: make",
    ]
    assert all(text[one.evidence.start : one.evidence.end] for one in found.unresolved)


PATTERNS = {
    "plain": ("a/b", "a/b", ()),
    "converted": ("<int:pk>/<name>", "{pk}/{name}", (("pk", "int"), ("name", "str"))),
    "regex": (r"^a/(?P<y>\d{4})\.x$", "a/{y}.x", (("y", r"\d{4}"),)),
    "nested": (r"^(?P<a>(x|[)]y))/$", "{a}/", (("a", "(x|[)]y)"),)),
}


@pytest.mark.parametrize(("pattern", "template", "found"), PATTERNS.values(), ids=list(PATTERNS))
def test_patterns_have_templates_and_parameters(
    pattern: str, template: str, found: tuple[tuple[str, str], ...]
) -> None:
    assert build_path_template(pattern) == template
    assert list_parameters(pattern) == found


def test_long_patterns_take_linear_time() -> None:
    assert build_path_template("<" * 200_000) == "<" * 200_000
    assert len(list_parameters("(?P<a>[^/]+)/" * 20_000)) == 20_000
