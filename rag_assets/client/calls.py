"""Calls of the service's operations, and the client methods that send them."""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import wraps
from typing import Any, Generic, Literal, ParamSpec, Protocol, TypeAlias, TypeVar, cast, overload
from urllib.parse import quote
from uuid import UUID

from rag_assets.common.errors import ConfigurationError

T = TypeVar("T")
Item = TypeVar("Item")
Method: TypeAlias = Literal["GET", "POST", "PUT", "PATCH", "DELETE"]


@dataclass(frozen=True, slots=True)
class FormFile:
    """A file to send in a form; `fields` are its other fields, without those that are None."""

    name: str
    content: bytes = field(repr=False)
    fields: Mapping[str, str | None] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Call(Generic[T]):
    """A request for one operation of the service, to be sent by a client.

    Attributes:
        method, path: HTTP method and path of the operation; the path is written as in the OpenAPI
            description.
        answer: type of a successful answer; str returns the text of the response.
        named: values for the placeholders in braces in the path.
        parameters: query parameters; None values are omitted.
        body: JSON body; None sends no body.
        file, lines, content: a file, lines of JSON, or bytes to send instead of a JSON body.
        headers: headers besides the token.
        tenanted: whether to add the default tenant.
        of_project: whether `id` in the path is the id of a project.
        repeatable: whether sending the call twice has the same effect as sending it once.
        seconds: minimum timeout in seconds, which overrides a shorter timeout of the client.
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
        """Return the path with its placeholders filled in; slashes in the values are escaped."""
        return self.path.format_map({name: _quote(value) for name, value in self.named.items()})

    def with_defaults(self, tenant: str | None, project: str | None = None) -> Call[T]:
        """Return the call, with the default tenant or project filled in if the call names none.

        Raises:
            ConfigurationError: the call needs a project, but neither the call nor the arguments
                name one.
        """
        if self.of_project:
            return self._with_project(project)
        if tenant is None or not self.tenanted:
            return self
        if self.body is not None and self.method == "POST":
            return replace(self, body={"tenant": tenant, **self.body})
        if self.parameters.get("tenant") is not None:
            return self
        return replace(self, parameters={**self.parameters, "tenant": tenant})

    def _with_project(self, project: str | None) -> Call[T]:
        if "id" in self.named:
            return self
        if project is None:
            raise ConfigurationError(
                "the call needs a project, but no project is set",
                hint="pass `project` to the call or to the client, or set RAG_ASSETS_PROJECT",
            )
        return replace(self, named={**self.named, "id": project})


@dataclass(frozen=True, slots=True)
class Pages(Generic[T, Item]):
    """A list that is fetched page by page; `items` returns the items of a page."""

    first: Call[T]
    items: Callable[[T], Sequence[Item]]

    def build_next_call(self, page: T) -> Call[T] | None:
        """Return the call for the page after `page`; None after the last page."""
        after = cast("Any", page).next
        if after is None:
            return None
        return replace(self.first, parameters={**self.first.parameters, "after": _encode(after)})


def _quote(name: str) -> str:
    # A proxy would interpret "." or ".." as a step in the path.
    return quote(name, safe="") if name.strip(".") else name.replace(".", "%2E")


P = ParamSpec("P")


def operation(
    method: Method, path: str, answer: type[T], *, query: Sequence[str] = (), **options: Any
) -> Callable[[Callable[P, Mapping[str, Any] | None]], Callable[P, Call[T]]]:
    """Return a decorator that turns a function into an operation with the same parameters.

    The decorated function returns a Call. Each argument becomes a part of this call:

    - An argument fills the placeholder with the same name in the path; `page_id` also fills
      `{page}`, and `project` fills `{id}` if the operation belongs to a project.
    - `etag` is sent as If-Match. A repeated call would be refused, so it is not repeatable.
    - All other arguments of GET and DELETE, and those named in `query`, are query parameters.
    - The remaining arguments form the JSON body, without None and empty lists.

    A function with a body returns fields of the Call, which replace the fields listed above.

    Args:
        query: names of the query parameters, if the operation also has a JSON body.

    Example:
        >>> @operation("GET", "/rag/documents", Documents)
        ... def documents(*, after: str | None = None, limit: int = 100) -> None:
        ...     '''Return a page of documents.'''
    """
    placeholders = re.findall(r"{(\w+)}", path)

    def declare(describe: Callable[P, Mapping[str, Any] | None]) -> Callable[P, Call[T]]:
        signature = inspect.signature(describe)

        @wraps(describe)
        def build(*arguments: P.args, **named_arguments: P.kwargs) -> Call[T]:
            bound = signature.bind(*arguments, **named_arguments)
            bound.apply_defaults()
            values = {name: _encode(value) for name, value in bound.arguments.items()}
            fields: dict[str, Any] = {"named": {}, "parameters": {}, **options}
            if fields.get("of_project") and (project := values.pop("project")) is not None:
                fields["named"]["id"] = project
            for name in placeholders:
                key = next((key for key in (name, f"{name}_id") if key in values), None)
                if key is not None:
                    fields["named"][name] = values.pop(key)
            if (etag := values.pop("etag", None)) is not None:
                fields |= {"headers": {"If-Match": etag}, "repeatable": False}
            is_body = method not in {"GET", "DELETE"}
            for name in [name for name in values if name in query or not is_body]:
                fields["parameters"][name] = values.pop(name)
            if is_body:
                fields["body"] = drop_empty(values)
            own = describe(*arguments, **named_arguments)
            if own is not None and not own.keys().isdisjoint({"file", "lines", "content"}):
                fields["body"] = None
            return Call(method, path, answer, **{**fields, **(own or {})})

        return build

    return declare


def _encode(value: Any) -> Any:
    """Return a value as JSON expresses it: ids and times as text, sequences as lists."""
    match value:
        case UUID():
            return str(value)
        case datetime():
            return value.isoformat()
        case list() | tuple():
            return [_encode(item) for item in value]
        case Mapping():
            return dict(value)
    return value


def drop_empty(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values other than None and empty lists."""
    return {
        name: value
        for name, value in values.items()
        if not (value is None or (isinstance(value, list) and not value))
    }


def join_lines(rows: Iterable[Mapping[str, Any]]) -> str:
    """Return rows as lines of JSON."""
    return "\n".join(json.dumps(dict(row)) for row in rows)


F = TypeVar("F", bound=Callable[..., Any])
T_co = TypeVar("T_co", covariant=True)
Item_co = TypeVar("Item_co", covariant=True)


def copy_signature(operation: Callable[..., Any]) -> Callable[[F], F]:
    """Return a decorator that gives a method the name, docstring and parameters of an operation."""

    def describe(method: F) -> F:
        signature = inspect.signature(operation)
        self_parameter = inspect.Parameter("self", inspect.Parameter.POSITIONAL_ONLY)
        # With `functools.wraps`, a bound method would appear without its first argument.
        described: Any = method
        described.__name__ = operation.__name__
        described.__doc__ = operation.__doc__
        parameters = [self_parameter, *signature.parameters.values()]
        described.__signature__ = signature.replace(parameters=parameters)
        return method

    return describe


class BlockingSender(Protocol):
    """A client that blocks until the answer to a call arrives."""

    def send(self, call: Call[T]) -> T: ...  # noqa: D102
    def items(self, pages: Pages[T, Item]) -> Iterator[Item]: ...  # noqa: D102


class AsyncSender(Protocol):
    """A client that returns an awaitable for the answer to a call."""

    def send(self, call: Call[T]) -> Awaitable[T]: ...  # noqa: D102
    def items(self, pages: Pages[T, Item]) -> AsyncIterator[Item]: ...  # noqa: D102


class ClientMethod(Protocol[P, T_co]):
    """A method that returns the answer to a request, or an awaitable for it."""

    @overload
    def __get__(self, client: BlockingSender, owner: type) -> Callable[P, T_co]: ...
    @overload
    def __get__(self, client: AsyncSender, owner: type) -> Callable[P, Awaitable[T_co]]: ...


class ListMethod(Protocol[P, Item_co]):
    """A method that iterates over the items of a list, fetching its pages."""

    @overload
    def __get__(self, client: BlockingSender, owner: type) -> Callable[P, Iterator[Item_co]]: ...
    @overload
    def __get__(self, client: AsyncSender, owner: type) -> Callable[P, AsyncIterator[Item_co]]: ...


def build_method(build: Callable[P, Call[T]]) -> ClientMethod[P, T]:
    """Return a client method that builds the call of an operation and sends it."""

    @copy_signature(build)
    def method(self: Any, /, *arguments: P.args, **options: P.kwargs) -> Any:
        return self.send(build(*arguments, **options))

    return cast("ClientMethod[P, T]", method)


def build_list_method(build: Callable[P, Pages[T, Item]]) -> ListMethod[P, Item]:
    """Return a client method that iterates over all items of a paged operation."""

    @copy_signature(build)
    def method(self: Any, /, *arguments: P.args, **options: P.kwargs) -> Any:
        return self.items(build(*arguments, **options))

    return cast("ListMethod[P, Item]", method)
