"""The tree of errors, and what its module says of it."""

from __future__ import annotations

import inspect
import re

from rag_assets.common import errors
from rag_assets.common.errors import (
    ConfigurationError,
    InvalidRequest,
    RagAssetsError,
    UnknownDocument,
)

_BRANCH = re.compile(r"^    (?P<indent>(?:[│ ]   )*)[├└]── (?P<name>\w+)")


def documented() -> dict[str, str]:
    """The parent of each error, as the module's docstring draws the tree."""
    parents: dict[str, str] = {}
    path = ["RagAssetsError"]
    for line in (errors.__doc__ or "").splitlines():
        if match := _BRANCH.match(line):
            depth = len(match["indent"]) // 4 + 1
            path[depth:] = [match["name"]]
            parents[match["name"]] = path[depth - 1]
    return parents


def test_the_documented_tree_is_the_tree() -> None:
    classes = {
        name: found.__base__.__name__
        for name, found in inspect.getmembers(errors, inspect.isclass)
        if issubclass(found, RagAssetsError) and found is not RagAssetsError
    }
    assert documented() == classes


def test_a_request_is_no_configuration() -> None:
    for error in (InvalidRequest, UnknownDocument):
        assert not issubclass(error, ConfigurationError)
