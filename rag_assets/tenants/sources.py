"""A source in a tenant's configuration: validated by the kind that its `type` names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, TypeAlias, Union

from pydantic import PlainSerializer, PlainValidator, ValidationError, ValidationInfo
from pydantic_core import InitErrorDetails, PydanticCustomError

from rag_assets.common.errors import ConfigurationError
from rag_assets.ingest.sources.kinds import SourceConfig
from rag_assets.ingest.sources.registry import SOURCE_KINDS, kind_of
from rag_assets.tenants.kinds import kinds_of


def _validated(value: Any, info: ValidationInfo) -> SourceConfig:
    if isinstance(value, SourceConfig):
        return value
    if not isinstance(value, Mapping):
        raise PydanticCustomError("model_type", "it must be a group of fields")
    kinds = kinds_of(info).sources
    try:
        kind = kind_of(value, kinds)
    except ConfigurationError as unknown:
        problem = PydanticCustomError("unknown_kind", "{hint}", {"hint": unknown.hint})
        detail = InitErrorDetails(type=problem, loc=("type",), input=None)
        raise ValidationError.from_exception_data("source", [detail]) from None
    config: SourceConfig = kind.config.model_validate(value, context=info.context)
    return config


def _serialized(config: SourceConfig) -> dict[str, Any]:
    return config.model_dump(mode="json")


# The schema, and so the reference of the configuration, lists the built-in kinds.
_BUILT_IN: Any = Union[tuple(kind.config for kind in SOURCE_KINDS.values())]  # noqa: UP007

Source: TypeAlias = Annotated[
    SourceConfig,
    PlainValidator(_validated, json_schema_input_type=_BUILT_IN),
    PlainSerializer(_serialized),
]
"""The configuration of a source of any kind."""
