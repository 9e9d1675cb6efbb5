"""Metadata of Dagster's events as plain values, which any JSON encoder accepts."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias, cast

if TYPE_CHECKING:
    import dagster as dg

Plain: TypeAlias = str | int | float | bool | list[Any] | dict[str, Any] | None


def plain_metadata(metadata: Mapping[str, dg.MetadataValue[Any]]) -> dict[str, Plain]:
    """Return metadata by title: a table as a list of its rows, an unknown type as its text."""
    return {title: _value(value) for title, value in metadata.items()}


def _value(value: dg.MetadataValue[Any]) -> Plain:
    import dagster as dg

    if isinstance(value, dg.TableMetadataValue):
        return [_plain(record.data) for record in value.records]
    return _plain(value.value)


def _plain(value: object) -> Plain:
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, float):
        # JSON cannot represent these, and a check may report a vector that is not finite.
        return value if math.isfinite(value) else str(value)
    if isinstance(value, Mapping):
        return {str(name): _plain(item) for name, item in value.items()}
    # Only exact lists and tuples are converted, not subclasses: Dagster's records are tuples that
    # cannot be iterated.
    if type(value) in {list, tuple}:
        return [_plain(item) for item in cast("Sequence[object]", value)]
    return str(value)
