"""Calls: requests of operations, and the types of their answers, for both clients."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Generic, Literal, TypeAlias, TypeVar
from urllib.parse import quote

from rag_assets.common.errors import ConfigurationError

T = TypeVar("T")
Item = TypeVar("Item")
Method: TypeAlias = Literal["GET", "POST", "PUT", "PATCH", "DELETE"]


@dataclass(frozen=True, slots=True)
class FormFile:
    """A file that is sent as a form.

    Attributes:
        name: of the file.
        fields: of the form besides it; None is left out.
    """

    name: str
    content: bytes = field(repr=False)
    fields: Mapping[str, str | None] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Call(Generic[T]):
    """One request.

    Attributes:
        method, path: of the operation, the path as in the service's description.
        answer: what a successful answer is read as; str for its text.
        named: what stands in the braces of the path.
        parameters: of the address; None is left out.
        body: as JSON; None for none.
        file: sent in place of a body.
        lines: of JSON, likewise.
        content: as it is, likewise.
        headers: besides the token.
        tenanted: whether it is about one tenant, which may be named.
        of_project: whether it is about one project, the `id` in its path.
        repeatable: whether the call may be sent twice with the same effect.
        seconds: that the service may be silent for at least, whatever the client's timeout.
    """

    method: Method
    path: str
    answer: type[T]
    named: Mapping[str, str] = field(default_factory=dict)
    parameters: Mapping[str, str | int | Sequence[str] | None] = field(default_factory=dict)
    body: Mapping[str, Any] | None = None
    file: FormFile | None = None
    lines: str | None = None
    content: bytes | None = field(default=None, repr=False)
    headers: Mapping[str, str] = field(default_factory=dict)
    tenanted: bool = True
    of_project: bool = False
    repeatable: bool = True
    seconds: float = 0.0

    @property
    def address(self) -> str:
        """The path with its names in place; whatever they hold stays between two slashes."""
        return self.path.format_map({name: _quoted(value) for name, value in self.named.items()})

    def about(self, tenant: str | None, project: str | None = None) -> Call[T]:
        """The same about a tenant or a project, unless it names one itself.

        Raises:
            ConfigurationError: it is about a project, and none is named.
        """
        if self.of_project:
            return self._of_project(project)
        if tenant is None or not self.tenanted:
            return self
        if self.body is not None and self.method == "POST":
            return replace(self, body={"tenant": tenant, **self.body})
        if self.parameters.get("tenant") is not None:
            return self
        return replace(self, parameters={**self.parameters, "tenant": tenant})

    def _of_project(self, project: str | None) -> Call[T]:
        if "id" in self.named:
            return self
        if project is None:
            raise ConfigurationError(
                "no project is named", hint="name it, or set RAG_ASSETS_PROJECT or `project`"
            )
        return replace(self, named={**self.named, "id": project})


@dataclass(frozen=True, slots=True)
class Pages(Generic[T, Item]):
    """A list that comes page by page.

    Attributes:
        first: the call for the first page.
        items: what a page holds.
        next: the `after` of the page that follows; None after the last.
    """

    first: Call[T]
    items: Callable[[T], Sequence[Item]]
    next: Callable[[T], str | int | None]

    def following(self, page: T) -> Call[T] | None:
        """The call for the page after one."""
        after = self.next(page)
        if after is None:
            return None
        return replace(self.first, parameters={**self.first.parameters, "after": after})


def _quoted(name: str) -> str:
    # A dot alone would be taken for a step in the path, by a proxy.
    return quote(name, safe="") if name.strip(".") else name.replace(".", "%2E")
