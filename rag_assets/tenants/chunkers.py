"""The chunker of a tenant, and rules that select another chunker for some documents."""

from __future__ import annotations

from functools import lru_cache
from typing import Annotated, Any, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    GetJsonSchemaHandler,
    PrivateAttr,
    ValidationInfo,
    field_validator,
    model_validator,
)
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from rag_assets.common.errors import ConfigurationError
from rag_assets.ingest.chunking.chunkers import (
    DEFAULT_CHUNKER,
    ChunkerKinds,
    build_chunk_parameters,
)
from rag_assets.ingest.chunking.kinds import ChunkParameters
from rag_assets.ingest.parsing.media_types import SOURCE_CODE, find_media_type
from rag_assets.tenants.kinds import installed_kinds, read_kinds


class _InstalledChunkers:
    """The names of the installed chunkers, for the schema and the configuration reference."""

    def __get_pydantic_json_schema__(
        self, core: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        """Return a schema with the chunkers' names; only this loads the systems."""
        return {"type": "string", "enum": [*installed_kinds().chunkers]}


ChunkerName = Annotated[str, _InstalledChunkers()]


@lru_cache(maxsize=256)  # called for every document
def _list_media_types(name: str) -> frozenset[str]:
    """Return the media types that a format name stands for; empty if the name is unknown."""
    if name == "code":
        return SOURCE_CODE
    media_type = name if "/" in name else find_media_type(f"name.{name}")
    return frozenset({media_type} if media_type else ())


def _require_known_format(name: str) -> str:
    if not _list_media_types(name):
        raise ConfigurationError(
            f"chunkers: {name!r} is not a known format",
            hint="use a file's suffix without its dot, such as csv, or a media type, or code",
        )
    return name


Format = Annotated[str, AfterValidator(_require_known_format)]


class ChunkerConfig(BaseModel):
    """The chunker of documents and its limits.

    Omitted settings take the chunker's defaults.

    Attributes:
        chunker: the name of a chunker.
        max_tokens: limit of cl100k_base tokens in a chunk; for chunkers that count tokens.
        max_characters: limit of Unicode code points in a chunk; for chunkers that count characters.
        overlap: the most that a chunk repeats of the previous chunk, in the unit of its limit and
            at most half of it; for chunkers with an overlap.
        levels: heading levels that start a new chunk, 1 to 9; a deeper section stays with the
            section above it, within the limit. For heading (by default all) and code (3).
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    chunker: ChunkerName = DEFAULT_CHUNKER
    max_tokens: int | None = None
    max_characters: int | None = None
    overlap: int | None = None
    levels: int | None = None

    _chunkers: ChunkerKinds | None = PrivateAttr(default=None)

    @property
    def parameters(self) -> ChunkParameters:
        """Return these settings, with the chunker's defaults in place of omitted settings."""
        return build_chunk_parameters(
            self.chunker,
            max_tokens=self.max_tokens,
            max_characters=self.max_characters,
            overlap=self.overlap,
            levels=self.levels,
            chunkers=installed_kinds().chunkers if self._chunkers is None else self._chunkers,
        )

    @field_validator("chunker")
    @classmethod
    def _require_known(cls, name: str, info: ValidationInfo) -> str:
        if name not in (known := read_kinds(info).chunkers):
            raise ValueError(f"choose one of: {', '.join(known)}")
        return name

    @model_validator(mode="after")
    def _require_usable_parameters(self, info: ValidationInfo) -> Self:
        self._chunkers = read_kinds(info).chunkers
        _ = self.parameters
        return self


class ChunkerRule(ChunkerConfig):
    """The chunker of documents that meet every condition of the rule.

    Attributes:
        chunker, max_tokens, max_characters, overlap, levels: as for all documents.
        formats: of the content, by a file's suffix (csv), by media type (text/csv), or code for
            source code of every language.
        sources: names of the documents' sources.
        source_types: types of the documents, as stored in the index (file).
    """

    chunker: ChunkerName
    formats: tuple[Format, ...] = ()
    sources: tuple[str, ...] = ()
    source_types: tuple[str, ...] = ()

    @model_validator(mode="after")
    def _require_condition(self) -> Self:
        if not (self.formats or self.sources or self.source_types):
            raise ConfigurationError(
                "chunkers: a rule has neither formats, sources nor source_types",
                hint="add at least one of them to the rule, or set chunker for all documents",
            )
        return self

    @property
    def media_types(self) -> frozenset[str]:
        """Return the media types of the rule's formats."""
        return frozenset().union(*map(_list_media_types, self.formats))

    def matches(self, *, source: str, source_type: str, media_type: str) -> bool:
        """Return whether a document meets every condition of the rule."""
        return (
            (not self.formats or media_type in self.media_types)
            and (not self.sources or source in self.sources)
            and (not self.source_types or source_type in self.source_types)
        )

    def identity(self) -> dict[str, Any]:
        """Return all fields that affect the chunks; the hashes in keys include them."""
        return {
            **self.parameters.identity(),
            "media_types": sorted(self.media_types),
            "sources": sorted(self.sources),
            "source_types": sorted(self.source_types),
        }
