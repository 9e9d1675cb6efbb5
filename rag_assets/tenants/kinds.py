"""The kinds that a tenant's configuration can name, and its sources, validated by their kind."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Annotated, Any, TypeAlias, TypeVar, Union

from pydantic import (
    GetJsonSchemaHandler,
    PlainSerializer,
    PlainValidator,
    TypeAdapter,
    ValidationError,
    ValidationInfo,
)
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, InitErrorDetails, PydanticCustomError

from rag_assets.common.errors import ConfigurationError
from rag_assets.common.kinds import by_name
from rag_assets.ingest.chunking.chunkers import CHUNKERS, ChunkerKinds
from rag_assets.ingest.sources.kinds import SourceConfig
from rag_assets.ingest.sources.registry import SOURCE_KINDS, SourceKinds, get_source_kind
from rag_assets.plugins.registry import Systems, installed_systems


@dataclass(frozen=True, slots=True)
class TenantKinds:
    """The kinds of sources and chunkers that a tenant's configuration may name."""

    sources: SourceKinds = field(default_factory=lambda: SOURCE_KINDS)
    chunkers: ChunkerKinds = field(default_factory=lambda: CHUNKERS)


def installed_kinds() -> TenantKinds:
    """Return the built-in kinds and the kinds of the installed systems."""
    return _load_kinds(installed_systems())


def read_kinds(info: ValidationInfo) -> TenantKinds:
    """Return the kinds in the context of a validation; without a context, all installed kinds."""
    return info.context if isinstance(info.context, TenantKinds) else installed_kinds()


@lru_cache(maxsize=4)
def _load_kinds(systems: Systems) -> TenantKinds:
    sources = systems.load("source_kinds", reserved=SOURCE_KINDS)
    chunkers = systems.load("chunkers", reserved=CHUNKERS)
    return TenantKinds(
        sources=by_name(SOURCE_KINDS.values(), sources.values()),
        chunkers=by_name(CHUNKERS.values(), chunkers.values()),
    )


SourceT = TypeVar("SourceT", bound=SourceConfig)


def _validate_source(value: Any, info: ValidationInfo) -> SourceConfig:
    if isinstance(value, SourceConfig):
        return value
    if not isinstance(value, Mapping):
        raise PydanticCustomError("model_type", "it must be a mapping")
    kinds = read_kinds(info).sources
    try:
        kind = get_source_kind(value, kinds)
    except ConfigurationError as unknown:
        problem = PydanticCustomError("unknown_kind", "{hint}", {"hint": unknown.hint})
        detail = InitErrorDetails(type=problem, loc=("type",), input=None)
        raise ValidationError.from_exception_data("source", [detail]) from None
    config: SourceConfig = kind.config.model_validate(value, context=info.context)
    return config


def _serialize_source(config: SourceConfig) -> dict[str, Any]:
    return config.model_dump(mode="json")


class _InstalledKinds:
    """The configurations of the installed kinds, for the schema and the configuration reference."""

    def __get_pydantic_json_schema__(
        self, core: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        """Return a schema with the kinds of sources; only this loads the systems."""
        kinds = [kind for kind in installed_kinds().sources.values() if not kind.implicit]
        written: Any = Union[tuple(kind.config for kind in kinds)]  # noqa: UP007
        return handler(TypeAdapter(written).core_schema)


Source: TypeAlias = Annotated[
    SourceConfig,
    PlainValidator(_validate_source),
    PlainSerializer(_serialize_source),
    _InstalledKinds(),
]
"""The configuration of a source of any kind."""


def choose_source(
    tenant_id: str,
    takes: Mapping[str, SourceT],
    wanted: str | None,
    *,
    kind: str,
    refusal: type[ConfigurationError],
) -> SourceT:
    """Return the source that accepts pushed content: the wanted source, or the only candidate.

    If no source matches, or several do, raise the error `refusal`.
    """
    if not takes:
        raise refusal(
            f"tenant {tenant_id!r} has no source that accepts {kind}",
            hint=f"add `{{name: {kind}, type: {kind}}}` to its sources in tenants.yaml",
        )
    if wanted is None and len(takes) == 1:
        return next(iter(takes.values()))
    if wanted is not None and wanted in takes:
        return takes[wanted]
    reason = "none has the given name" if wanted else "there are several"
    raise refusal(
        f"the sources of tenant {tenant_id!r} that accept {kind}: {reason}",
        hint=f"set `source` to one of: {', '.join(sorted(takes))}",
    )
