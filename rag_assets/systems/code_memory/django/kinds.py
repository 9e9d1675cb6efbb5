"""Source types in Django: by a definition's ancestors, by its use, and by its path."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from rag_assets.ingest.chunking.model import Fact
from rag_assets.systems.code_memory.django.modules import Module
from rag_assets.systems.code_memory.django.program import Program
from rag_assets.systems.code_memory.django.routes import routes_of
from rag_assets.systems.code_memory.django.routing import Routes
from rag_assets.systems.code_memory.symbols.model import FileFacts
from rag_assets.systems.code_memory.symbols.source_types import SourceType

_MODELS: Final = frozenset(
    {
        *("django.db.models.Model", "django.db.models.base.Model"),
        "django.contrib.gis.db.models.Model",
        *("django.contrib.auth.models.AbstractUser", "django.contrib.auth.models.User"),
        "django.contrib.auth.models.AbstractBaseUser",
        "django.contrib.auth.base_user.AbstractBaseUser",
        *("django.contrib.auth.models.PermissionsMixin", "django.contrib.auth.models.Group"),
        "django.contrib.sessions.base_session.AbstractBaseSession",
        *("mptt.models.MPTTModel", "tree_queries.models.TreeNode", "treebeard.mp_tree.MP_Node"),
        "polymorphic.models.PolymorphicModel",
        "model_utils.models.TimeStampedModel",
        "django_extensions.db.models.TimeStampedModel",
        *("wagtail.models.Page", "modelcluster.models.ClusterableModel"),
        *("taggit.models.TaggedItemBase", "solo.models.SingletonModel"),
        "parler.models.TranslatableModel",
    }
)
"""Base classes of models, in Django and in other packages."""
_BASES: Final[Mapping[str, SourceType]] = {
    **dict.fromkeys(_MODELS, "model"),
    "django.db.migrations.Migration": "migration",
    "django.db.migrations.migration.Migration": "migration",
    "django.dispatch.Signal": "event",
    "django.dispatch.dispatcher.Signal": "event",
    "django.utils.deprecation.MiddlewareMixin": "middleware",
    "django.core.management.base.BaseCommand": "code",
    "django.core.management.BaseCommand": "code",
    "celery.Task": "job",
    "celery.app.task.Task": "job",
}
_PREFIXES: Final[tuple[tuple[str, SourceType], ...]] = (
    ("rest_framework.serializers.", "resource"),
    ("rest_framework.permissions.", "policy"),
    ("rest_framework.viewsets.", "controller"),
    ("rest_framework.views.", "controller"),
    ("rest_framework.generics.", "controller"),
    ("django.views.", "controller"),
    ("django.contrib.auth.views.", "controller"),
    ("django.forms.renderers.", "code"),
    ("django.forms.widgets.", "code"),
    ("django.forms.fields.", "code"),
    ("django.forms.", "request"),
    ("django.contrib.auth.forms.", "request"),
)
_ENDS: Final[tuple[tuple[str, SourceType], ...]] = (
    ("ViewSet", "controller"),
    ("View", "controller"),
    ("Serializer", "resource"),
    ("Permission", "policy"),
    ("MiddlewareMixin", "middleware"),
)
"""Endings of the names of ancestors in other packages, with the source type of each."""

_PARTS: Final = ("Field", "Widget", "FieldFile", "BoundField", "Input", "Renderer")
"""Endings of the names of parts of forms, which are not forms themselves."""

_TASKS: Final = ("celery.shared_task", "celery.app.shared_task", ".task", "huey.contrib.djhuey")
_RECEIVERS: Final = ("django.dispatch.receiver", "django.dispatch.dispatcher.receiver")
_PLACES: Final[tuple[tuple[str, SourceType], ...]] = (
    ("services", "service"),
    ("listeners", "listener"),
    ("receivers", "listener"),
    ("middleware", "middleware"),
    ("permissions", "policy"),
    ("policies", "policy"),
    ("events", "event"),
)


def kinds_of(
    files: Sequence[FileFacts], routes: Routes | None = None
) -> Mapping[tuple[str, str], SourceType]:
    """Return the source type of each definition that has one.

    Args:
        files: the files of one Django repository.
        routes: the routes of the repository, if they were read before.

    Returns:
        types by path and qualified name within the file; methods have the type of their class.
    """
    program = Program(files)
    found: dict[tuple[str, str], SourceType] = {}
    for module in program:
        for symbol, fact in module.declared.items():
            kind = _by_text(program, module, symbol, fact)
            if kind is not None:
                found[module.path, symbol] = kind
        for symbol in _signals(program, module):
            found[module.path, symbol] = "event"
    for name, kind in _by_use(program, routes or routes_of(files)):
        place = program.place(name)
        if place is not None and place.symbol in place.module.declared:
            key = place.module.path, place.symbol
            if found.get(key) not in {"job", "model"}:
                found[key] = kind
    return {key: kind for key, kind in found.items() if kind != "code"}


def _by_text(program: Program, module: Module, symbol: str, fact: Fact) -> SourceType | None:
    """Return the type that a definition's own text shows, or else its path."""
    role = fact.values["role"]
    # An inner class such as Meta has its outer class's type.
    if "." in symbol:
        return None
    if role == "class":
        lineage = program.ancestry(f"{module.name}.{symbol}")
        kind = _by_ancestry(program, lineage)
    else:
        kind = _by_decorators(program, module, fact.values["decorators"])
    return kind or _by_place(module, fact)


def _by_ancestry(program: Program, lineage: Sequence[str]) -> SourceType | None:
    outside = [one for one in lineage[1:] if program.place(one) is None]
    for one in outside:
        if one in _BASES:
            return _BASES[one]
        last = one.rpartition(".")[2]
        if last.endswith(_PARTS) or "Exception" in last:
            return "code"
        for prefix, kind in _PREFIXES:
            if one.startswith(prefix):
                return kind
    for one in outside:
        for end, kind in _ENDS:
            if one.rpartition(".")[2].endswith(end):
                return kind
    return None


def _by_decorators(
    program: Program, module: Module, decorators: Sequence[Any]
) -> SourceType | None:
    for value in decorators:
        name = _name(program, module, value)
        if name.endswith(_RECEIVERS):
            return "listener"
        if name.endswith(_TASKS) or name.startswith(_TASKS[-1]):
            return "job"
        if name.endswith("decorators.api_view"):
            return "controller"
    return None


def _name(program: Program, module: Module, value: Any) -> str:
    called = value["call"] if isinstance(value, dict) and value["of"] == "call" else value
    written = called.get("name", "") if isinstance(called, dict) else ""
    return program.external(program.absolute(written, module)) if written else ""


def _by_place(module: Module, fact: Fact) -> SourceType | None:
    if not fact.values["public"]:
        return None
    parts = module.name.split(".")
    if "management" in parts and "commands" in parts:
        return None
    for place, kind in _PLACES:
        if place in parts[-3:] and (kind == "service" or fact.values["role"] == "class"):
            return kind
    return None


def _signals(program: Program, module: Module) -> Iterator[str]:
    for fact in module.assigned.get("", ()):
        value = fact.values["value"]
        if isinstance(value, dict) and value["of"] == "call":
            lineage = program.ancestry(_name(program, module, value))
            if any(_BASES.get(one) == "event" for one in lineage):
                yield fact.values["name"]


def _by_use(program: Program, routes: Routes) -> Iterator[tuple[str, SourceType]]:
    for route in routes.routes:
        if route.view:
            yield route.view, "controller"
    for module in program:
        for name in ("MIDDLEWARE", "MIDDLEWARE_CLASSES"):
            for fact in module.values("", name):
                yield from ((one, "middleware") for one in _strings(fact.values["value"]))
        for fact in module.invoked:
            yield from _connected(program, module, fact.values["call"])


def _connected(program: Program, module: Module, call: Any) -> Iterator[tuple[str, SourceType]]:
    """Yield the receiver in `signal.connect(receiver)`."""
    called = call["call"].get("name", "") if isinstance(call["call"], dict) else ""
    arguments = [*call["arguments"][:1], *(v for k, v in call["named"].items() if k == "receiver")]
    if called.endswith(".connect"):
        for value in arguments[:1]:
            name = _name(program, module, value)
            if name:
                yield name, "listener"


def _strings(value: Any) -> Iterator[str]:
    todo = [value]
    while todo:
        at = todo.pop()
        if isinstance(at, str):
            yield at
        elif isinstance(at, dict) and at["of"] in {"list", "tuple", "sum"}:
            todo.extend(at["items"])
