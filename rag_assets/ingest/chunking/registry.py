"""The built-in chunkers, and parameters by the names used in configurations."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from rag_assets.common.errors import ConfigurationError
from rag_assets.common.kinds import by_name, find_kind
from rag_assets.ingest.chunking.heading import HEADING
from rag_assets.ingest.chunking.kinds import ChunkerKind, ChunkParameters
from rag_assets.ingest.chunking.page import PAGE
from rag_assets.ingest.chunking.record import RECORD
from rag_assets.ingest.chunking.recursive import RECURSIVE
from rag_assets.ingest.chunking.sentence import SENTENCE
from rag_assets.plugins.registry import installed_systems

ChunkerKinds: TypeAlias = Mapping[str, ChunkerKind]

CHUNKERS: ChunkerKinds = by_name((HEADING, RECURSIVE, SENTENCE, RECORD, PAGE))
"""To add a chunker, define one ChunkerKind in its own module and list it here."""

DEFAULT_CHUNKER = HEADING.name


def chunker_of_workers(name: str) -> ChunkerKind | None:
    """Return the chunker that workers use for a name; None if they know no such chunker.

    Workers know the built-in chunkers, and the chunkers of systems that read facts with a parser.
    """
    if name in CHUNKERS:
        return CHUNKERS[name]
    part = installed_systems().parts("chunkers").get(name)
    kind: ChunkerKind | None = None if part is None else part.load()
    return None if kind is None or kind.read is None else kind


def prepare_readers() -> None:
    """Import the modules that the chunkers of systems need to read facts."""
    for name in installed_systems().parts("chunkers"):
        kind = chunker_of_workers(name)
        if kind is not None and kind.prepare is not None:
            kind.prepare()


def chunk_parameters(
    chunker: str = DEFAULT_CHUNKER,
    *,
    max_tokens: int | None = None,
    max_characters: int | None = None,
    overlap: int | None = None,
    levels: int | None = None,
    chunkers: ChunkerKinds = CHUNKERS,
) -> ChunkParameters:
    """Build parameters from a configuration's fields; omitted fields take the chunker's defaults.

    Args:
        chunker: name of the chunker.
        max_tokens: the limit of a chunker that counts tokens.
        max_characters: the limit of a chunker that counts characters.
        overlap: the overlap, in the unit of the limit; by default in proportion to the limit.
        levels: number of heading levels at which a new passage starts; by default the
            chunker's.
        chunkers: the known chunkers.

    Raises:
        ConfigurationError: the chunker or its setting does not exist, or a value is out of
            range.
    """
    kind = find_kind(chunker, chunkers, "chunker")
    given = {
        "max_tokens": max_tokens,
        "max_characters": max_characters,
        "overlap": overlap,
        "levels": levels,
    }
    for name, value in given.items():
        if value is not None and name not in kind.settings:
            raise ConfigurationError(
                f"chunker {chunker} has no setting {name}",
                hint=f"its settings are {' and '.join(kind.settings)}",
            )
    chosen = given[f"max_{kind.unit}"]
    limit = kind.limit if chosen is None else chosen
    usual = kind.overlap * limit // kind.limit
    # The default is the same as an omitted value: keys contain only values that differ from it.
    chosen_levels = None if levels == kind.levels and levels else levels
    return ChunkParameters(kind, limit, usual if overlap is None else overlap, levels=chosen_levels)
