"""From a source's configuration to the source."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, TypeAlias

from pydantic import Discriminator, Tag, ValidationError

from rag_assets.common.errors import ConfigurationError
from rag_assets.ingest.sources.files import FilesConfig, FilesSource
from rag_assets.ingest.sources.model import DocumentSource
from rag_assets.ingest.sources.records import RecordsConfig, RecordShelf, RecordsSource


def _type_of(config: Any) -> Any:
    """The tag of a source's configuration; a folder of files need not say that it is one."""
    return config.get("type", "files") if isinstance(config, Mapping) else config.type


SourceConfig: TypeAlias = Annotated[
    Annotated[FilesConfig, Tag("files")] | Annotated[RecordsConfig, Tag("records")],
    Discriminator(_type_of),
]


@dataclass(frozen=True, slots=True)
class _Surroundings:
    base: Path
    shelf: RecordShelf | None
    allowed_roots: tuple[Path, ...]
    forbidden: tuple[Path, ...]


_Builder: TypeAlias = Callable[[Mapping[str, Any], _Surroundings], DocumentSource]


def build_source(
    config: Mapping[str, Any],
    *,
    base: Path,
    shelf: RecordShelf | None = None,
    allowed_roots: Iterable[Path] = (),
    forbidden: Iterable[Path] = (),
) -> DocumentSource:
    """Make the source that a configuration describes.

    Args:
        config: its `type` and whatever that type takes, as written in tenants.yaml.
        base: what a relative root is relative to (Settings.home).
        shelf: where the tenant's pushed records are.
        allowed_roots: folders that roots may lie in (Settings.allowed_roots); none: any.
        forbidden: the project's own state (Settings.local, a local lake elsewhere).

    Raises:
        ConfigurationError: the type is unknown, or the configuration is not usable.
    """
    kind = config.get("type")
    builder = _BUILDERS.get(kind) if isinstance(kind, str) else None
    if builder is None:
        raise ConfigurationError(
            f"no source type {kind!r} for source {config.get('name')!r}",
            hint=f"known types: {', '.join(sorted(_BUILDERS))}",
        )
    around = _Surroundings(base, shelf, tuple(allowed_roots), tuple(forbidden))
    try:
        return builder(config, around)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(map(str, first["loc"]))
        raise ConfigurationError(
            f"source {config.get('name')!r}: {where}: {first['msg']}",
            hint="see the source types in docs/",
        ) from error


def _files(config: Mapping[str, Any], around: _Surroundings) -> FilesSource:
    parsed = FilesConfig.model_validate(config)
    absolute = parsed.model_copy(update={"root": around.base / parsed.root.expanduser()})
    return FilesSource(absolute, around.allowed_roots, around.forbidden)


def _records(config: Mapping[str, Any], around: _Surroundings) -> RecordsSource:
    parsed = RecordsConfig.model_validate(config)
    if around.shelf is None:
        raise ConfigurationError(
            f"source {parsed.name!r}: there is no catalog to read records from",
            hint="open it with the tenant's catalog",
        )
    return RecordsSource(parsed, around.shelf)


_BUILDERS: Mapping[str, _Builder] = {"files": _files, "records": _records}
