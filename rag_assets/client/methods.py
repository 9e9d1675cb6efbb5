"""Factories that create the methods of both clients, one method for each operation."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import Any, ParamSpec, Protocol, TypeVar, cast, overload

from rag_assets.client.calls import Call, Pages
from rag_assets.client.signatures import described_by

P = ParamSpec("P")
T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
Item = TypeVar("Item")
Item_co = TypeVar("Item_co", covariant=True)


class BlockingSender(Protocol):
    """A client that blocks until the answer arrives."""

    def send(self, call: Call[T]) -> T: ...  # noqa: D102
    def items(self, pages: Pages[T, Item]) -> Iterator[Item]: ...  # noqa: D102


class AsyncSender(Protocol):
    """A client that returns an awaitable for the answer."""

    def send(self, call: Call[T]) -> Awaitable[T]: ...  # noqa: D102
    def items(self, pages: Pages[T, Item]) -> AsyncIterator[Item]: ...  # noqa: D102


class Method(Protocol[P, T_co]):
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


def method_of(build: Callable[P, Call[T]]) -> Method[P, T]:
    """Return the method that sends the request of an operation."""

    @described_by(build)
    def method(self: Any, /, *arguments: P.args, **options: P.kwargs) -> Any:
        return self.send(build(*arguments, **options))

    return cast("Method[P, T]", method)


def list_method_of(build: Callable[P, Pages[T, Item]]) -> ListMethod[P, Item]:
    """Return the method that iterates over the list that an operation returns."""

    @described_by(build)
    def method(self: Any, /, *arguments: P.args, **options: P.kwargs) -> Any:
        return self.items(build(*arguments, **options))

    return cast("ListMethod[P, Item]", method)
