"""Models as migrations leave them, one operation after the other."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from rag_assets.code.frameworks.django.modules import Evidence, Unresolved

VIRTUAL: Final = frozenset({"GenericForeignKey", "GenericRelation"})
"""Relations without a column."""


@dataclass(frozen=True, slots=True)
class StatedField:
    """A field of a model in a migration.

    Attributes:
        name: of it.
        type: the last name of its class.
        base: that of the class of relations which it is or extends; its own for any other.
        target: label and lower name of the model that it refers to; "" for none.
        through: whether many relate to many by a model of their own.
        on_delete: in lower case.
        options: arguments that are text, numbers or truth values.
        evidence: the last operation that stated it.
    """

    name: str
    type: str
    base: str
    target: str
    through: bool
    on_delete: str
    options: Mapping[str, Any]
    evidence: Evidence

    @property
    def many(self) -> bool:
        """Whether it relates many to many, so that it has no column."""
        return self.base.endswith(("ManyToManyField", "TaggableManager"))

    @property
    def single(self) -> bool:
        """Whether it relates one to one."""
        return self.base.endswith("OneToOneField")

    @property
    def virtual(self) -> bool:
        """Whether it has no column."""
        return self.many or self.base in VIRTUAL

    @property
    def nullable(self) -> bool:
        """Whether its column may be null."""
        return self.options.get("null") is True

    @property
    def column(self) -> str:
        """Its column."""
        stated = self.options.get("db_column")
        if isinstance(stated, str):
            return stated
        return f"{self.name}_id" if self.target else self.name


@dataclass(slots=True, eq=False)
class ModelState:
    """A model.

    Attributes:
        app, name: label of its app; its name.
        stated: its table as stated; "" for the one by convention.
        fields: by name.
        indexes: kind and fields by name.
        together: fields that are unique together.
        evidence: operations on it.
        reasons: what of it was computed.
    """

    app: str
    name: str
    stated: str = ""
    proxy: bool = False
    managed: bool = True
    fields: dict[str, StatedField] = field(default_factory=dict)
    indexes: dict[str, tuple[str, tuple[str, ...]]] = field(default_factory=dict)
    together: list[tuple[str, ...]] = field(default_factory=list)
    evidence: list[Evidence] = field(default_factory=list)
    reasons: list[str] = field(default_factory=list)

    @property
    def table(self) -> str:
        """The table that keeps it."""
        return self.stated or f"{self.app}_{self.name.lower()}"

    @property
    def key(self) -> str:
        """The column of its primary key."""
        found = (f for f in self.fields.values() if f.options.get("primary_key") is True)
        first = next(found, None)
        return "id" if first is None else first.column


@dataclass(slots=True, eq=False)
class State:
    """All models at one moment.

    Attributes:
        user: the model of users (`auth.User`).
        models: by label and lower name with a dot between.
        written: operations of SQL by the table that they make or alter.
        created: tables that SQL made.
        unresolved: operations that the text does not state.
    """

    user: str
    models: dict[str, ModelState] = field(default_factory=dict)
    written: dict[str, list[Evidence]] = field(default_factory=dict)
    created: set[str] = field(default_factory=set)
    unresolved: list[Unresolved] = field(default_factory=list)

    def find(self, name: str) -> ModelState | None:
        """A model by label and name, in any case of letters."""
        return self.models.get(name.lower())
