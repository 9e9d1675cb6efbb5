"""Models: classes that become tables, with their fields, as Django's registry has them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Final, TypeAlias

from rag_assets.code.frameworks.django.apps import Apps
from rag_assets.code.frameworks.django.fields import (
    OTHER_FIELDS,
    VIRTUAL,
    Field,
    Model,
    Models,
    is_relation,
)
from rag_assets.code.frameworks.django.known import KNOWN_BASES, KNOWN_MODELS, MODEL_BASES
from rag_assets.code.frameworks.django.modules import Evidence, Unresolved
from rag_assets.code.frameworks.django.program import Place, Program
from rag_assets.code.model import FileFacts


def models_of(files: Iterable[FileFacts]) -> Models:
    """The models of a repository.

    Args:
        files: of it.
    """
    return _Reading(Program(files)).read()


class _Reading:
    def __init__(self, program: Program) -> None:
        self._program = program
        self._apps = Apps(program)
        self._unresolved: list[Unresolved] = []
        self._lineages = {
            place.name: program.ancestry(place.name)
            for module in program
            for symbol, fact in module.declared.items()
            if fact.values["role"] == "class"
            for place in (Place(module, symbol),)
        }
        self._fields_of: dict[str, tuple[Field, ...]] = {}

    def read(self) -> Models:
        heirs = [name for name, lineage in self._lineages.items() if is_model(lineage)]
        found: dict[str, Model] = {}
        # An ancestor is read before its heirs.
        for name in sorted(heirs, key=lambda one: len(self._lineages[one])):
            place = self._program.place(name)
            if place is not None and "." not in place.symbol:
                found[name] = self._model(name, place, found)
        labels = {
            (one.app, one.symbol.lower()): name
            for name, one in reversed(found.items())
            if not one.abstract
        }
        named = {name: _named(one, found, labels) for name, one in found.items()}
        return Models(named, tuple(self._unresolved))

    def _model(self, name: str, place: Place, found: Mapping[str, Model]) -> Model:
        lineage = self._lineages[name]
        abstract = self._meta(place, "abstract") is True
        proxy = self._meta(place, "proxy") is True
        parents = tuple(one for one in lineage[1:] if one in found and not found[one].abstract)
        app = self._app(name)
        table = "" if abstract else self._table(place, lineage, app)
        if proxy and parents:
            table = found[parents[0]].table
        elif proxy:
            table = next((_outside(one) for one in lineage if one in KNOWN_MODELS), table)
        fact = place.module.declared[place.symbol]
        return Model(
            name,
            place.module.path,
            place.symbol,
            app,
            table,
            abstract,
            proxy,
            tuple(self._all_fields(lineage, found)),
            parents,
            Evidence(place.module.path, fact.start, fact.end),
            all(self._program.place(one) or one in KNOWN_BASES for one in lineage),
        )

    def _app(self, name: str) -> str:
        """The label of a model's app; Meta's counts, also an abstract ancestor's."""
        for one in self._metas(self._lineages[name]):
            value = one.module.constant(f"{one.symbol}.Meta", "app_label")
            if isinstance(value, str):
                return value
        return self._apps.label(name.rpartition(".")[0])

    def _metas(self, lineage: list[str]) -> Iterator[Place]:
        """The class and the ancestors that its Meta descends from."""
        for index, one in enumerate(lineage):
            place = self._program.place(one)
            if place is None:
                continue
            # Heirs of a model with a table of its own do not see its Meta.
            if index and self._meta(place, "abstract") is not True:
                continue
            yield place
            if f"{place.symbol}.Meta" in place.module.declared:
                inner = place.module.bases.get(f"{place.symbol}.Meta", [])
                if not any(base.rpartition(".")[2].endswith("Meta") for base in inner):
                    return

    def _table(self, place: Place, lineage: list[str], app: str) -> str:
        for one in self._metas(lineage):
            value = one.module.constant(f"{one.symbol}.Meta", "db_table")
            if isinstance(value, str):
                return value.strip('"')
            if value is not None:
                at = one.module.evidence(value)
                self._unresolved.append(Unresolved("a computed table", at))
                return ""
        return f"{app}_{place.symbol.lower()}"

    def _meta(self, place: Place, name: str) -> Any:
        return place.module.constant(f"{place.symbol}.Meta", name)

    def _all_fields(self, lineage: list[str], found: Mapping[str, Model]) -> Iterator[Field]:
        seen: set[str] = set()
        # What a model with a table has, with its ancestors, is in that table.
        elsewhere = {
            one
            for parent in lineage[1:]
            if parent in found and not found[parent].abstract
            for one in self._lineages[parent]
        }
        for one in lineage:
            place = self._program.place(one)
            if place is None:
                fields = tuple(_known(one, lineage[0], self._program))
            else:
                fields = self._own_fields(one, place)
            for field in fields:
                shared = one not in elsewhere or field.type in VIRTUAL
                if shared and field.name not in seen:
                    yield field
            held = () if place is None else place.module.assigned.get(place.symbol, ())
            seen |= {fact.values["name"] for fact in held} | {field.name for field in fields}

    def _own_fields(self, name: str, place: Place) -> tuple[Field, ...]:
        if name not in self._fields_of:
            found: dict[str, Field] = {}
            for fact in place.module.assigned.get(place.symbol, ()):
                field = self._field(place, fact)
                if field is not None:
                    found[field.name] = field
            self._fields_of[name] = tuple(found.values())
        return self._fields_of[name]

    def _field(self, place: Place, fact: Any) -> Field | None:
        value, name = fact.values["value"], fact.values["name"]
        if not isinstance(value, dict) or value["of"] != "call" or "." in name:
            return None
        called = value["call"].get("name", "") if isinstance(value["call"], dict) else ""
        kind = self._kind(called, place)
        if not kind:
            return None
        evidence = Evidence(place.module.path, fact.start, fact.end)
        base = self._relation(called, place, kind)
        target = through = ""
        if is_relation(base) and base != "GenericForeignKey":
            target = self._target(value, place, evidence)
            through = self._model_name(value["named"].get("through"), place)
        return Field(
            name, kind, target, through, _column(name, base, value), _options(value), evidence
        )

    def _kind(self, called: str, place: Place) -> str:
        """The last name of a class of fields; "" for what is none."""
        if not called:
            return ""
        lineage = self._program.ancestry(self._program.absolute(called, place.module))
        last = lineage[0].rpartition(".")[2]
        if any(_is_field(one) for one in lineage if self._program.place(one) is None):
            return last
        return ""

    def _relation(self, called: str, place: Place, kind: str) -> str:
        """The class of relations that a class of fields is or extends."""
        lineage = self._program.ancestry(self._program.absolute(called, place.module))
        names = (one.rpartition(".")[2] for one in lineage)
        return next((one for one in names if is_relation(one)), kind)

    def _target(self, call: Any, place: Place, evidence: Evidence) -> str:
        to = call["arguments"][0] if call["arguments"] else call["named"].get("to")
        found = self._model_name(to, place)
        if not found:
            self._unresolved.append(Unresolved("a relation to a computed model", evidence))
        return found

    def _model_name(self, value: Any, place: Place) -> str:
        """A model: a class, "Invoice", "billing.Invoice", "self" or a setting."""
        if isinstance(value, dict) and value.get("of") == "call":
            name = value["call"].get("name", "") if isinstance(value["call"], dict) else ""
            return self._program.user_model if name.endswith("get_user_model") else ""
        if isinstance(value, dict) and value.get("of") == "name":
            if value["name"].rpartition(".")[2] == "AUTH_USER_MODEL":
                return self._program.user_model
            name = self._program.external(self._program.absolute(value["name"], place.module))
            held = self._program.place(name)
            if held is not None and held.symbol not in held.module.declared:
                return self._model_name(held.module.constant("", held.symbol), held)
            if "." not in name:
                name = f"{place.module.name}.{name}"
            return name
        if not isinstance(value, str):
            return ""
        return SELF if value == "self" else value


SELF: Final = "self"
_Labels: TypeAlias = Mapping[tuple[str, str], str]
"""Names of models by the label of their app and their lower name."""

_BROUGHT: Final[_Labels] = {
    (app.rpartition(".")[2], model.lower()): f"{app}.models.{model}"
    for app, model in (name.split(".models.") for name in KNOWN_MODELS)
}
"""Those that Django itself brings."""


def _outside(name: str) -> str:
    """The table of a model that Django itself brings."""
    return next("_".join(label) for label, one in _BROUGHT.items() if one == name)


def is_model(lineage: Iterable[str]) -> bool:
    """Whether a class with these ancestors is a model."""
    return any(one in MODEL_BASES or one in KNOWN_BASES for one in lineage)


def _named(model: Model, models: Collection[str], labels: _Labels) -> Model:
    """A model whose relations name models by their absolute names."""
    fields = tuple(
        replace(
            one,
            relates_to=_absolute(one.relates_to, model, models, labels),
            through=_absolute(one.through, model, models, labels),
        )
        for one in model.fields
    )
    return replace(model, fields=fields)


def _absolute(name: str, model: Model, models: Collection[str], labels: _Labels) -> str:
    if name == SELF:
        return model.name
    if not name or name in models:
        return name
    app, _, last = name.rpartition(".")
    label = app or model.app, last.lower()
    return labels.get(label) or _BROUGHT.get(label, name)


def _is_field(name: str) -> bool:
    last = name.rpartition(".")[2]
    if name.startswith(("django.forms.", "rest_framework.", "django_filters.", "graphene.")):
        return False
    return last.endswith(("Field", "ForeignKey", "ParentalKey")) or last in OTHER_FIELDS


def _column(name: str, kind: str, call: Any) -> str:
    if kind in OTHER_FIELDS or kind.endswith("ManyToManyField"):
        return ""
    stated = call["named"].get("db_column")
    if isinstance(stated, str):
        return stated
    return f"{name}_id" if is_relation(kind) else name


def _options(call: Any) -> dict[str, Any]:
    plain = str | int | float | bool
    return {key: value for key, value in call["named"].items() if isinstance(value, plain)}


def _known(base: str, heir: str, program: Program) -> list[Field]:
    """The fields of an abstract base that Django itself brings."""
    place = program.place(heir)
    fact = None if place is None else place.module.declared[place.symbol]
    if place is None or fact is None:
        return []
    at = Evidence(place.module.path, fact.start, fact.end)
    found = []
    for name, (kind, target) in KNOWN_BASES.get(base, {}).items():
        column = "" if kind == "ManyToManyField" else f"{name}_id" if target else name
        found.append(Field(name, kind, target, "", column, {}, at))
    return found
