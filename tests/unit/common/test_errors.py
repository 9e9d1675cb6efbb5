import ast
import inspect
from pathlib import Path

from rag_assets.common import errors
from rag_assets.common.errors import (
    BadVectors,
    BatchLost,
    ConfigurationError,
    InvalidRequest,
    MalformedResponse,
    ProviderError,
    UnknownDocument,
)
from rag_assets.models import transport


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
