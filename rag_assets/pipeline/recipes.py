"""Recipes: everything that distinguishes one build of a tenant's index from another.

A build's key is a hash of its recipe, and the build's row stores it. So a build can be brought up
to date, repaired and checked while the tenant's configuration asks for a different build.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal, TypeAlias, get_args

from rag_assets.common.errors import BuildNotWritable, ConfigurationError, RagAssetsError
from rag_assets.common.hashing import compute_key
from rag_assets.ingest.chunking.chunk_set import CHUNKER_VERSION, DROPPING_VERSION
from rag_assets.ingest.chunking.kinds import ChunkParameters
from rag_assets.ingest.parsing.languages import get_detector_version
from rag_assets.ingest.parsing.registry import compute_parsers_version
from rag_assets.models.config import EmbedderConfig
from rag_assets.models.factory import get_embedder_id
from rag_assets.storage.catalog.builds.generations import Generation
from rag_assets.storage.index.model import SCHEMA_VERSION, IndexSpec, Placement, VectorIndex
from rag_assets.storage.index.terms import TERMS_VERSION
from rag_assets.tenants.chunkers import ChunkerConfig, ChunkerRule
from rag_assets.tenants.model import IndexConfig, Tenant

Settings: TypeAlias = Mapping[str, Any]

_LABELS = {
    "chunker": "chunker",
    "chunkers": "rules of chunkers",
    "chunker_version": "version of chunkers",
    "schema_version": "schema",
    "vector_index": "kind of index",
    "placement": "placement",
}


@dataclass(frozen=True, slots=True)
class Recipe:
    """How a build is made, apart from its embedder, which the build's row stores separately.

    Attributes:
        chunker_version, schema_version: versions of the code that opened the build.
        configured_index: the kind in the tenant's configuration, or "auto".
    """

    chunker: Settings
    chunkers: tuple[Settings, ...]
    chunker_version: int
    schema_version: int
    vector_index: VectorIndex
    configured_index: VectorIndex | Literal["auto"]
    placement: Placement

    @classmethod
    def from_tenant(cls, tenant: Tenant, kind: VectorIndex) -> Recipe:
        """Return the recipe by which the configuration builds an index of this kind."""
        return cls(
            chunker=_build_settings(tenant.chunker.parameters),
            chunkers=tuple(_build_rule_settings(rule) for rule in tenant.chunkers),
            chunker_version=CHUNKER_VERSION,
            schema_version=SCHEMA_VERSION,
            vector_index=kind,
            configured_index=tenant.index.vector_index,
            placement=tenant.index.placement,
        )

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> Recipe:
        """Rebuild a recipe from a build's row; the inverse of as_row."""
        return cls(**{**row, "chunkers": tuple(row["chunkers"])})

    def as_row(self) -> dict[str, Any]:
        """Return the recipe as JSON for a build's row."""
        return {**asdict(self), "chunkers": [dict(rule) for rule in self.chunkers]}

    def configure_tenant(self, tenant: Tenant) -> Tenant:
        """Return the tenant, reconfigured so that its runs make builds of this recipe."""
        rules = tuple(ChunkerRule.model_validate(rule) for rule in self.chunkers)
        index = IndexConfig(placement=self.placement, vector_index=self.configured_index)
        chunker = ChunkerConfig.model_validate(self.chunker)
        return tenant.model_copy(update={"chunker": chunker, "chunkers": rules, "index": index})


def read_recipe(generation: Generation) -> Recipe | None:
    """Return the recipe in a build's row; None if unknown."""
    return None if generation.recipe is None else Recipe.from_row(generation.recipe)


def find_recipe(generation: Generation, tenant: Tenant) -> Recipe | None:
    """Return a build's recipe if the tenant's configuration produces it; else None."""
    kind = _map_kinds_by_key(tenant, generation.embedder_id).get(generation.key)
    return None if kind is None else Recipe.from_tenant(tenant, kind)


def configure_tenant_for_build(tenant: Tenant, embedder_id: str, generation: Generation) -> Tenant:
    """Return the tenant, configured as it was when this build was opened.

    Args:
        embedder_id: id of the embedder that the tenant has now. The current limits of that embedder
            also apply to builds that it made.

    Raises:
        BuildNotWritable: the recipe is not known, or the recipe or the model can no longer be used.
    """
    recipe = read_recipe(generation)
    if recipe is None:
        raise _build_not_writable_error(
            tenant, generation, "was made by an earlier version, which did not record its chunker"
        )
    try:
        configured = recipe.configure_tenant(tenant)
    except (ValueError, RagAssetsError):
        configured = None
    if configured is None or generation.key not in _map_kinds_by_key(
        configured, generation.embedder_id
    ):
        reason = "was made by a different version of the chunker or of the index's schema"
        raise _build_not_writable_error(tenant, generation, reason)
    if generation.embedder_id == embedder_id:
        return configured
    return configured.model_copy(update={"embedder": _get_embedder_config(tenant, generation)})


def choose_index_spec(generation: Generation, tenant: Tenant) -> IndexSpec:
    """Return the number of dimensions and the kind of a build's index."""
    return IndexSpec(
        generation.dimensions, _map_kinds_by_key(tenant, generation.embedder_id)[generation.key]
    )


def find_configured_build(
    generations: Sequence[Generation], tenant: Tenant, embedder_id: str
) -> Generation | None:
    """Return the newest of these builds that the tenant's configuration would produce.

    If the configuration leaves the kind of index open, a build with any kind counts.
    """
    keys = _map_kinds_by_key(tenant, embedder_id)
    builds = [g for g in generations if g.key in keys and g.state != "REMOVING"]
    return builds[-1] if builds else None


def find_wanted_build(
    generations: Sequence[Generation], tenant: Tenant, embedder_id: str
) -> Generation | None:
    """Return the build that should answer: the pinned build, else the configuration's."""
    pinned = next((g for g in generations if g.pinned and g.state != "REMOVING"), None)
    return pinned or find_configured_build(generations, tenant, embedder_id)


def compute_generation_key(tenant: Tenant, embedder_id: str, kind: VectorIndex) -> str:
    """Return the hash that distinguishes one complete build of a tenant from another."""
    chosen = tenant.chunker.parameters
    # Include rules only if there are any: the keys of tenants without rules must not change.
    rules = [[rule.identity() for rule in tenant.chunkers]] if tenant.chunkers else []
    levels = [{"levels": chosen.levels}] if chosen.levels is not None else []
    return compute_key(
        "generation",
        embedder_id,
        CHUNKER_VERSION,
        chosen.kind.name,
        chosen.limit,
        chosen.overlap,
        SCHEMA_VERSION,
        kind,
        tenant.index.placement,
        *levels,
        *rules,
    )


def compute_config_key(tenant: Tenant, embedder_id: str) -> str:
    """Return the hash of all configuration that determines a tenant's entries.

    It includes the versions of parsers, readers of facts, secret rules, language detector and term
    analysis. If one of these changes, no new generation is made: their new output replaces the
    previous output document by document. The parser's limits and passwords are included as well, so
    that failed documents are retried after one of them changes.
    """
    parser, chosen = tenant.parser, tenant.index.vector_index
    # The kind of a build does not matter for this key. The key keeps the value from the time when
    # int8_hnsw was the default, so that no document is checked again when a tenant leaves its kind
    # open.
    kind: VectorIndex = "int8_hnsw" if chosen == "auto" else chosen
    return compute_key(
        "config",
        compute_generation_key(tenant, embedder_id, kind),
        compute_parsers_version(),
        get_detector_version(),
        DROPPING_VERSION,
        TERMS_VERSION,
        parser.model_dump(mode="json"),
        parser.options.identity(),
        # Include these only if a chunker reads facts: the keys of other tenants must not change.
        *tenant.fact_readers.values(),
        *([tenant.own_frameworks_json] if tenant.own_frameworks_json else []),
    )


def _get_embedder_config(tenant: Tenant, generation: Generation) -> EmbedderConfig:
    try:
        config = EmbedderConfig.model_validate(generation.embedder)
        if get_embedder_id(config) == generation.embedder_id:
            return config
    except (ValueError, ConfigurationError):
        pass
    raise _build_not_writable_error(
        tenant,
        generation,
        f"was embedded by {generation.embedder_id}, which is no longer available",
    )


def _build_not_writable_error(
    tenant: Tenant, generation: Generation, reason: str
) -> BuildNotWritable:
    return BuildNotWritable(
        f"generation {generation.number} of tenant {tenant.id!r} {reason}",
        hint="the build can answer searches, but cannot be brought up to date;"
        " run `rag-assets sync` for a new build of the present configuration",
    )


def _map_kinds_by_key(tenant: Tenant, embedder_id: str) -> dict[str, VectorIndex]:
    """Return the kind of index for each generation key that the configuration can produce."""
    chosen = tenant.index.vector_index
    kinds: Sequence[VectorIndex] = get_args(VectorIndex) if chosen == "auto" else (chosen,)
    return {compute_generation_key(tenant, embedder_id, kind): kind for kind in kinds}


def _build_settings(parameters: ChunkParameters) -> dict[str, Any]:
    kind = parameters.kind
    values = {f"max_{kind.unit}": parameters.limit, "overlap": parameters.overlap}
    if parameters.levels is not None:
        values["levels"] = parameters.levels
    chosen = {name: values[name] for name in kind.settings if name in values}
    return {"chunker": kind.name, **chosen}


def _build_rule_settings(rule: ChunkerRule) -> dict[str, Any]:
    # Use media types, not the configured formats, because a later version may add media types to a
    # format.
    return {
        **_build_settings(rule.parameters),
        "formats": sorted(rule.media_types),
        "sources": sorted(rule.sources),
        "source_types": sorted(rule.source_types),
    }


def describe_differences(build: Generation, other: Generation) -> list[str]:
    """Return the differences between two builds, one line each."""
    ours, theirs = read_recipe(build), read_recipe(other)
    lines = []
    if build.embedder_id != other.embedder_id:
        lines.append(f"embedder: {other.embedder_id} → {build.embedder_id}")
    if ours is None or theirs is None:
        return [*lines, "chunkers and index: not known"] if build.key != other.key else lines
    for name, label in _LABELS.items():
        was, present = getattr(theirs, name), getattr(ours, name)
        if was != present:
            lines.append(f"{label}: {_format_value(was)} → {_format_value(present)}")
    return lines


def _format_value(value: object) -> str:
    if isinstance(value, Mapping):
        settings = (f"{name} {value[name]}" for name in sorted(value) if name != "chunker")
        return " ".join((str(value.get("chunker", "")), *settings))
    if isinstance(value, tuple):
        return f"{len(value)} of them"
    return str(value)
