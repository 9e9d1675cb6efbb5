"""Names of fields in JSON: the application's, in camelCase."""

from __future__ import annotations

from typing import Any, Final

_GIVEN: Final = {"id": "_id", "source": "from"}


def camel(name: str) -> str:
    """The name of a field in JSON."""
    if name in _GIVEN:
        return _GIVEN[name]
    first, *others = name.split("_")
    return first + "".join(word.capitalize() for word in others)


CAMEL: Final[Any] = {"alias_generator": camel, "validate_by_name": True, "validate_by_alias": True}
"""Of dataclasses that the service writes, as `__pydantic_config__`: they need no Pydantic."""
