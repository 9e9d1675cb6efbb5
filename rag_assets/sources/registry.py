"""From a source's configuration to the source."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, TypeAlias

from pydantic import ValidationError

from rag_assets.errors import ConfigurationError
from rag_assets.sources.files import FilesConfig, FilesSource
from rag_assets.sources.model import DocumentSource

Builder: TypeAlias = Callable[
    [Mapping[str, Any], Path, tuple[Path, ...], tuple[Path, ...]], DocumentSource
]


def build_source(
    config: Mapping[str, Any],
    *,
    base: Path,
    allowed_roots: Iterable[Path] = (),
    forbidden: Iterable[Path] = (),
) -> DocumentSource:
    """Make the source that a configuration describes.

    Args:
        config: its `type` and whatever that type takes, as written in tenants.yaml.
        base: what a relative root is relative to (Settings.home).
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
    try:
        return builder(config, base, tuple(allowed_roots), tuple(forbidden))
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(map(str, first["loc"]))
        raise ConfigurationError(
            f"source {config.get('name')!r}: {where}: {first['msg']}",
            hint="see the source types in docs/",
        ) from error


def _files(
    config: Mapping[str, Any],
    base: Path,
    allowed_roots: tuple[Path, ...],
    forbidden: tuple[Path, ...],
) -> FilesSource:
    parsed = FilesConfig.model_validate(config)
    absolute = parsed.model_copy(update={"root": base / parsed.root.expanduser()})
    return FilesSource(absolute, allowed_roots, forbidden)


_BUILDERS: Mapping[str, Builder] = {"files": _files}
