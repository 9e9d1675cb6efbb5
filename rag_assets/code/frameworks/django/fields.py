"""Models and their fields, as Django's registry has them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from rag_assets.code.frameworks.django.modules import Evidence, Unresolved

RELATIONS: Final = ("ForeignKey", "OneToOneField", "ManyToManyField", "ParentalKey")
VIRTUAL: Final = frozenset({"GenericForeignKey", "GenericRelation"})
OTHER_FIELDS: Final = frozenset({"TaggableManager", "ClusterTaggableManager", *VIRTUAL})


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a model.

    Attributes:
        name: of it.
        type: the last name of its class (`ForeignKey`).
        relates_to: absolute name of the model that it refers to; "" for a field that refers to
            none, or to any (GenericForeignKey).
        through: absolute name of the model between both; "" for none.
        column: of the table; "" for none.
        options: what was stated: arguments that are strings, numbers or truth values.
        evidence: the assignment.
    """

    name: str
    type: str
    relates_to: str
    through: str
    column: str
    options: Mapping[str, Any]
    evidence: Evidence

    @property
    def relates(self) -> bool:
        """Whether it refers to other models."""
        return is_relation(self.type)


@dataclass(frozen=True, slots=True)
class Model:
    """A model.

    Attributes:
        name: absolute, of the class.
        path, symbol: where the class is.
        app: label of its app.
        table: that it is kept in; of another model for a proxy; "" for an abstract one.
        abstract, proxy: by its Meta.
        fields: own ones, then those of abstract ancestors.
        parents: absolute names of the models whose tables it extends.
        evidence: the class.
        complete: whether no ancestor lies outside of the repository and what is known.
    """

    name: str
    path: str
    symbol: str
    app: str
    table: str
    abstract: bool
    proxy: bool
    fields: tuple[Field, ...]
    parents: tuple[str, ...]
    evidence: Evidence
    complete: bool


@dataclass(frozen=True, slots=True)
class Models:
    """The models of a repository.

    Attributes:
        models: by absolute name, abstract ones too.
        unresolved: fields and tables that are computed.
    """

    models: Mapping[str, Model]
    unresolved: tuple[Unresolved, ...]


def is_relation(kind: str) -> bool:
    """Whether a class of fields relates models, by its name."""
    return kind in OTHER_FIELDS or kind.endswith(RELATIONS)
