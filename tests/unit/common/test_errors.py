"""The tree of errors, and what its module says of it."""

from __future__ import annotations

import ast
import inspect
import re
from pathlib import Path

from rag_assets.common import errors
from rag_assets.common.errors import (
    BadVectors,
    BatchLost,
    ConfigurationError,
    InvalidRequest,
    MalformedResponse,
    ProviderError,
    RagAssetsError,
    UnknownDocument,
)
from rag_assets.models import transport

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


def test_transport_raises_only_errors_that_models_of_every_kind_share() -> None:
    imported: set[str] = set()
    for module in Path(transport.__file__ or "").parent.glob("*.py"):
        for node in ast.walk(ast.parse(module.read_text())):
            if isinstance(node, ast.ImportFrom) and node.module == errors.__name__:
                imported |= {alias.name for alias in node.names}
    raised = [found for name in imported if inspect.isclass(found := getattr(errors, name))]
    assert MalformedResponse in raised
    assert all(issubclass(error, ProviderError) for error in raised)
    assert not any(issubclass(error, BadVectors | BatchLost) for error in raised)
