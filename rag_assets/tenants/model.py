"""The configuration of a tenant: its sources, and how they are indexed and searched."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from functools import cache, cached_property, lru_cache
from typing import Annotated, Any, Final, Literal, Self, TypeAlias, TypeVar

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    PrivateAttr,
    StringConstraints,
    Tag,
    TypeAdapter,
    ValidationError,
    create_model,
    field_validator,
)
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import core_schema

from rag_assets.common.environment import require_variable_reference, resolve_variable_reference
from rag_assets.common.errors import ConfigurationError
from rag_assets.common.invalid_values import describe_problem
from rag_assets.ingest.chunking.kinds import ChunkParameters
from rag_assets.ingest.parsing.docling import require_docling
from rag_assets.ingest.parsing.ocr import require_languages
from rag_assets.ingest.parsing.options import ParseLimits, ParseOptions, PdfEngine
from rag_assets.ingest.sources.kinds import SourceConfig, SourceKind
from rag_assets.ingest.sources.registry import get_source_kind
from rag_assets.models.config import (
    ChatModelConfig,
    EmbedderConfig,
    RerankConfig,
    expand_chat_model,
)
from rag_assets.plugins.registry import Systems, installed_systems
from rag_assets.tenants.application_settings import VectorBackend
from rag_assets.tenants.chunkers import ChunkerConfig, ChunkerRule
from rag_assets.tenants.kinds import Source, TenantKinds, installed_kinds
from rag_assets.tenants.modes import SearchMode
from rag_assets.tenants.profiles import DEFAULT_PROFILE, apply_profile, get_profile

TenantId = Annotated[
    str, StringConstraints(pattern=r"^[a-z0-9]+([._-][a-z0-9]+)*$", min_length=1, max_length=63)
]
_Days = Annotated[int, Field(ge=1, le=36_500)]
_MAX_ENTRIES: Final = 20
"""Maximum entries of a list that a system defines."""


def _find_retention_form(retention: object) -> str:
    return "by source type" if isinstance(retention, Mapping) else "days"


Retention = Annotated[
    Annotated[_Days, Tag("days")]
    | Annotated[
        dict[Annotated[str, StringConstraints(min_length=1, max_length=63)], _Days],
        Tag("by source type"),
    ],
    Discriminator(_find_retention_form),
]
OcrLanguage = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_]{3,40}$")]


class _ConfigModel(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class _SystemEntries:
    """Validates a list in a tenant's configuration; a system defines the model of its entries."""

    def __init__(self, key: str) -> None:
        self._key = key

    def __get_pydantic_core_schema__(
        self, source: Any, handler: GetCoreSchemaHandler
    ) -> core_schema.CoreSchema:
        """Return the schema; the model is loaded for the first list that is not empty."""
        return core_schema.no_info_plain_validator_function(
            self._validate_entries,
            serialization=core_schema.plain_serializer_function_ser_schema(_dump_entries),
        )

    def __get_pydantic_json_schema__(
        self, core: core_schema.CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        """Return the schema of the entries; the system is loaded only when it is requested."""
        return {**handler(_load_entries_adapter(self._key).core_schema), "default": []}

    def _validate_entries(self, value: Any) -> tuple[BaseModel, ...]:
        return _load_entries_adapter(self._key).validate_python(value) if value else ()


def _load_entries_adapter(key: str) -> TypeAdapter[tuple[BaseModel, ...]]:
    part = installed_systems().parts("tenant_settings").get(key)
    if part is None:
        raise ConfigurationError(
            f"{key}: no installed system has this setting",
            hint=f"install the system that reads {key} again, or remove {key} from the tenant",
        )
    return _build_entries_adapter(part.load())


@cache
def _build_entries_adapter(model: type[BaseModel]) -> TypeAdapter[tuple[BaseModel, ...]]:
    entries: Any = tuple[model, ...]  # type: ignore[valid-type]
    return TypeAdapter(Annotated[entries, Field(max_length=_MAX_ENTRIES)])


def _dump_entries(entries: tuple[BaseModel, ...]) -> list[dict[str, Any]]:
    return [entry.model_dump(mode="json") for entry in entries]


class ParserConfig(_ConfigModel):
    """The parsing of documents, and its limits.

    Attributes:
        seconds: time limit of one document; scanned pages extend it.
        memory_mb: memory of the process that parses it, in MiB.
        keep_headers_footers: keep the lines that repeat on every page of a PDF.
        pdf: the PDF engine; docling needs packages that are not installed with this package.
        ocr: read the scanned pages of PDFs, about one per second and for at most ten minutes, and
            images in workspaces; needs the extra `ocr`.
        ocr_languages: of scanned pages and images, as Tesseract abbreviates them.
        ocr_data: folder with the data of other languages, files named LANGUAGE.traineddata.
        docling_models: folder of docling's models.
        passwords: for encrypted documents; each the name of an environment variable, as $NAME.
    """

    seconds: float = Field(default=60.0, gt=0, le=3600)
    memory_mb: int = Field(default=2048, ge=256, le=65_536)
    keep_headers_footers: bool = False
    pdf: PdfEngine = "liteparse"
    ocr: bool = False
    ocr_languages: tuple[OcrLanguage, ...] = Field(default=("eng",), min_length=1)
    ocr_data: str | None = None
    docling_models: str | None = None
    passwords: tuple[str, ...] = ()

    @field_validator("passwords")
    @classmethod
    def _require_variable_references(cls, references: tuple[str, ...]) -> tuple[str, ...]:
        for reference in references:
            require_variable_reference("parser.passwords", reference)
        return references

    @property
    def limits(self) -> ParseLimits:
        """Return the time and memory limits for parsing one document."""
        return ParseLimits(seconds=self.seconds, memory_bytes=self.memory_mb * 1024 * 1024)

    def require_installed(self) -> None:
        """Check that this machine has the packages and data that the settings need."""
        if self.pdf == "docling":
            require_docling(self.docling_models)
        if self.ocr:
            require_languages(self.ocr_languages, self.ocr_data)

    @property
    def options(self) -> ParseOptions:
        """Return the options of parsing, without the limits."""
        self.require_installed()
        return ParseOptions(
            keep_headers_footers=self.keep_headers_footers,
            passwords=tuple(
                resolve_variable_reference("parser.passwords", name) for name in self.passwords
            ),
            pdf=self.pdf,
            ocr=self.ocr,
            ocr_languages=self.ocr_languages,
            ocr_data=self.ocr_data,
            docling_models=self.docling_models,
        )


class IndexConfig(_ConfigModel):
    """The index of a tenant.

    Attributes:
        placement: "shared" with tenants of equal dimensions, or "dedicated": its own index,
            so that other tenants' documents do not affect its text scores.
        vector_index: Elasticsearch's type of kNN index; "auto": the type of the current build; for
            a new build "bbq_hnsw", or "int8_hnsw" below 384 dimensions.
    """

    placement: Literal["shared", "dedicated"] = "shared"
    vector_index: Literal["auto", "int8_hnsw", "hnsw", "bbq_hnsw"] = "auto"


ThresholdFrom: TypeAlias = Literal["measured", "as described"]


class RetrievalConfig(_ConfigModel):
    """Defaults of a search.

    Attributes:
        top_k: number of hits.
        min_score: cosine below which a hit is omitted; null for no threshold. By default, the value
            that suits the profile and the embedder; the local model has no threshold.
        threshold_from: source of the default of min_score. "measured": by the first questions, or
            by `rag-assets thresholds`, with the described figure as upper bound; "as described":
            always the described figure.
        mode: vectors, words, or both fused.
        rerank: the reranker of the top hits; without it, hits are not reranked.
        events_days: days that the events of searches, which contain their questions, are kept.
        unsupported_claims: whether answers remove or mark a claim with a number, a date, a unit or
            a name that the cited passage does not contain.
    """

    top_k: int = Field(default=5, ge=1, le=100)
    min_score: float | None = Field(default=None, ge=-1.0, le=1.0)
    threshold_from: ThresholdFrom = "measured"
    mode: SearchMode = "hybrid"
    rerank: RerankConfig | None = None
    events_days: int = Field(default=90, ge=1, le=36_500)
    unsupported_claims: Literal["remove", "mark"] = "remove"

    @property
    def fixes_threshold(self) -> bool:
        """Return whether the configuration fixes the thresholds, so that none is measured."""
        return self.threshold_from != "measured" or "min_score" in self.model_fields_set


class AccessConfig(_ConfigModel):
    """The access scope of a tenant's documents if a source does not set it."""

    scope: str = Field(default="public", min_length=1, max_length=256)


class PrivacyConfig(_ConfigModel):
    """The handling of questions that leave the installation.

    Attributes:
        send_unmasked_questions: send questions to the embedder, the reranker and the chat model
            unchanged; otherwise credentials in them are masked first. Stored or logged parts of a
            question are always masked.
    """

    send_unmasked_questions: bool = False


class CapsConfig(_ConfigModel):
    """Spending caps of a tenant, in dollars; searches and answers count too.

    Attributes:
        per_run: for one `rag-assets sync`, or one run of the daemon.
        per_day: from midnight to midnight, UTC.
        per_month: for a calendar month, UTC.
    """

    per_run: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    per_day: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    per_month: float | None = Field(default=None, ge=0, allow_inf_nan=False)


class QualityConfig(_ConfigModel):
    """The quality gate of a new build, decided by the tenant's judged questions.

    Attributes:
        tolerance: how much lower nDCG@10 or recall@5 of a new build may be than the serving
            build's.
        least: minimum of judged questions; with fewer, there is only a warning.
    """

    tolerance: float = Field(default=0.02, ge=0, le=1, allow_inf_nan=False)
    least: int = Field(default=20, ge=1)


class DriftConfig(_ConfigModel):
    """The period of full comparisons.

    Attributes:
        days: days within which every document of the sources is read again, every vector of an
            entry is compared with the lake, and every file of the lake is read.
    """

    days: int = Field(default=7, ge=1, le=366)


_AliasName = Annotated[str, StringConstraints(min_length=1, max_length=100)]


class _ProfileConfig(_ConfigModel):
    """Settings that only tenants of one profile have: the profile with the name of the field."""


class ExperienceConfig(_ProfileConfig):
    """The experience of a tenant with the profile experience.

    Attributes:
        code_tenant: the tenant with the code that entries are about. An entry with code changed
            since its capture is ranked after all others.
        aliases: names of technologies, kinds of tasks and agents, each with other spellings that
            questions may use. They replace the shipped spellings of that name.
    """

    code_tenant: TenantId | None = None
    aliases: Annotated[dict[_AliasName, tuple[_AliasName, ...]], Field(max_length=500)] = {}


class WorkspaceConfig(_ProfileConfig):
    """Settings that only tenants with the profile workspace have.

    Attributes:
        resolved_comment_days: days after which a resolved comment is no longer found.
        vector_backend: the back end of vector searches; its application may choose another.
    """

    resolved_comment_days: int = Field(default=30, ge=0, le=36_500)
    vector_backend: VectorBackend = "elasticsearch"


class Tenant(_ConfigModel):
    """One tenant with its profile's defaults filled in.

    Attributes:
        id: also the name of its partition.
        profile: the profile of a system, which supplies its defaults.
        name: for people; applications that make projects set it.
        organization, project: for applications that identify the tenant by these. A profile may
            require both, unique among its tenants.
        chat_model: the model that its application chats with and that writes answers: its name, or
            more about it. An embedding provider "auto" is derived from it.
        enabled: a disabled tenant neither indexes nor answers.
        sources: the sources of its documents, each with a unique name.
        chunkers: rules that select another chunker; the first rule that applies wins.
        frameworks: frameworks of its own source code, in addition to the built-in ones; an equal
            name replaces the built-in framework. They describe how code states routes, tables,
            requests of tests and events.
        caps: spending caps for embeddings and answers; finished work is kept.
        auto_repair: whether differences between sources, catalog, lake and index are repaired when
            they are found; otherwise checks report them.
        retention_days: documents are pruned this many days after their current content was first
            embedded: a number for all, or for each source type ("file" for files). Types that are
            not named are kept as long as their source keeps them.
        prune_share: share of a source's documents, if they are more than 20, that is pruned only
            after `rag-assets prune TENANT --confirm`; null: any share, for retention that is a
            rule.
        publish: "auto": a new build starts to answer when it is complete and has passed every
            check; "manual": when somebody publishes it.
        grace_days: days for which a build that no longer answers is kept, so that a rollback to it
            is free.
        freshness_minutes: how far behind its source the index may be before a check fails.
        canary_distance: cosine distance by which the vectors of fixed texts, embedded daily, may
            move before a check fails: the provider changed the model.
    """

    id: TenantId
    profile: str = DEFAULT_PROFILE
    name: Annotated[str | None, StringConstraints(min_length=1, max_length=256)] = None
    organization: str | None = None
    project: str | None = None
    chat_model: Annotated[ChatModelConfig | None, BeforeValidator(expand_chat_model)] = None
    enabled: bool = True
    sources: tuple[Source, ...] = ()
    parser: ParserConfig = ParserConfig()
    chunker: ChunkerConfig = Field(default_factory=ChunkerConfig)
    chunkers: tuple[ChunkerRule, ...] = ()
    frameworks: Annotated[tuple[Any, ...], _SystemEntries("frameworks")] = ()
    embedder: EmbedderConfig = EmbedderConfig()
    index: IndexConfig = IndexConfig()
    retrieval: RetrievalConfig = RetrievalConfig()
    access: AccessConfig = AccessConfig()
    privacy: PrivacyConfig = PrivacyConfig()
    caps: CapsConfig = CapsConfig()
    quality: QualityConfig = QualityConfig()
    drift: DriftConfig = DriftConfig()
    experience: ExperienceConfig = ExperienceConfig()
    workspace: WorkspaceConfig = WorkspaceConfig()
    auto_repair: bool = True
    retention_days: Retention | None = None
    prune_share: float | None = Field(default=0.5, ge=0, le=1)
    publish: Literal["auto", "manual"] = "auto"
    grace_days: int = Field(default=7, ge=0, le=3650)
    freshness_minutes: int = Field(default=60, ge=1)
    canary_distance: float = Field(default=0.01, gt=0, le=2)
    _kinds: TenantKinds = PrivateAttr(default_factory=installed_kinds)

    def model_post_init(self, context: Any) -> None:
        """Remember which kinds the configuration was validated with."""
        if isinstance(context, TenantKinds):
            self._kinds = context

    def source_kind(self, source: SourceConfig) -> SourceKind[Any]:
        """Return the kind of a source of the tenant."""
        return get_source_kind(source, self._kinds.sources)

    def chunk_parameters(
        self, *, source: str, source_type: str, media_type: str, path: str = ""
    ) -> ChunkParameters:
        """Return a document's chunk parameters: of the first matching rule, or the default."""
        rules = (
            rule
            for rule in self.chunkers
            if rule.matches(source=source, source_type=source_type, media_type=media_type)
        )
        parameters = next(rules, self.chunker).parameters.adapt_to(path, media_type)
        if not self.frameworks or parameters.kind.read is None:
            return parameters
        return replace(parameters, frameworks=self.own_frameworks_json)

    @cached_property
    def own_frameworks_json(self) -> str:
        """Return the tenant's own frameworks as JSON, for keys and workers; "" without any."""
        if not self.frameworks:
            return ""
        values = [
            framework.model_dump(mode="json", exclude_defaults=True)
            for framework in self.frameworks
        ]
        return json.dumps(values, sort_keys=True, ensure_ascii=False)

    @cached_property
    def fact_readers(self) -> Mapping[str, int]:
        """Return the version of each of the tenant's fact readers, by the name of its chunker."""
        kinds = {config.parameters.kind for config in (self.chunker, *self.chunkers)}
        readers = {kind.name: kind.reading_version for kind in kinds if kind.read is not None}
        return dict(sorted(readers.items()))

    @property
    def reads_facts(self) -> bool:
        """Return whether at least one of the tenant's chunkers reads facts from texts."""
        return bool(self.fact_readers)

    @property
    def chunk_types(self) -> frozenset[str]:
        """Return the source types that the tenant's chunkers may assign to chunks."""
        kinds = (config.parameters.kind for config in (self.chunker, *self.chunkers))
        return frozenset(type_ for kind in kinds for type_ in kind.chunk_types)

    def get_retention_days(self, source_type: str) -> int | None:
        """Return for how many days documents of a source type are kept; None for no limit."""
        days = self.retention_days
        return days.get(source_type) if isinstance(days, dict) else days

    @property
    def labels(self) -> Mapping[str, str]:
        """Return the metadata that every document of the tenant carries.

        That is organization and project if the profile requires them, and nothing otherwise.
        """
        if not get_profile(self.profile).requires_project:
            return {}
        return {"organizationId": self.organization or "", "projectId": self.project or ""}

    def min_score(
        self, embedder_id: str, use: str | None = None, *, measured: float | None = None
    ) -> float | None:
        """Return the cosine below which a hit is omitted; None for no threshold."""
        if "min_score" in self.retrieval.model_fields_set:
            return self.retrieval.min_score
        if measured is not None and self.retrieval.threshold_from == "measured":
            return measured
        return get_profile(self.profile).threshold(embedder_id, use)

    def calibrates(self, embedder_id: str) -> bool:
        """Return whether the tenant's first questions measure the threshold for an embedder."""
        if self.retrieval.fixes_threshold:
            return False
        return embedder_id.partition("@")[0] in get_profile(self.profile).calibrates

    @classmethod
    def from_config(cls, config: Mapping[str, Any], kinds: TenantKinds | None = None) -> Self:
        """Validate a tenant's configuration, completed with its profile's defaults.

        Args:
            kinds: the kinds that the configuration may name; None: all installed kinds.

        Raises:
            UnknownProfile: no profile has that name.
            ConfigurationError: a field is not valid; the message names it.
        """
        filled = apply_profile(config)
        model: type[Self] = _build_full_model(cls, installed_systems())
        try:
            tenant = model.model_validate(filled, context=kinds)
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False)[0]
            raise ConfigurationError(
                f"tenant {config.get('id')!r}: {describe_problem(first)}",
                hint="docs/configuration.md describes the fields of a tenant; a field of a system"
                " needs that system to be installed",
            ) from None
        except ConfigurationError as error:
            raise ConfigurationError(
                f"tenant {config.get('id')!r}: {error.message}", hint=error.hint
            ) from None
        _require_own_sections(tenant)
        if get_profile(tenant.profile).requires_project:
            _require_project(tenant)
        names = [source.name for source in tenant.sources]
        if len(set(names)) < len(names):
            raise ConfigurationError(
                f"tenant {tenant.id!r} has two sources with the same name",
                hint="give each source a unique name",
            )
        frameworks = Counter(framework.name for framework in tenant.frameworks)
        if repeated := [name for name, count in frameworks.items() if count > 1]:
            raise ConfigurationError(
                f"tenant {tenant.id!r} has two frameworks named {repeated[0]!r}",
                hint="give each framework a unique name, and put all its rules under it",
            )
        unknown = sorted({name for rule in tenant.chunkers for name in rule.sources} - set(names))
        if unknown:
            raise ConfigurationError(
                f"tenant {tenant.id!r}: chunkers: no source is named {unknown[0]!r}",
                hint=f"its sources are: {', '.join(names) or 'none'}",
            )
        return tenant


_TenantT = TypeVar("_TenantT", bound=Tenant)


@lru_cache(maxsize=4)
def _build_full_model(model: type[_TenantT], systems: Systems) -> type[_TenantT]:
    """Return the model with a field for each setting of a system.

    Raises:
        ConfigurationError: a system's setting has the name of a field of all tenants.
    """
    of_systems = {
        name
        for name, field in model.model_fields.items()
        if any(isinstance(item, _SystemEntries) for item in field.metadata)
    }
    reserved = {*model.model_fields, *dir(model)} - of_systems
    settings = systems.parts("tenant_settings", reserved=sorted(reserved))
    fields: dict[str, Any] = {
        key: (Annotated[tuple[Any, ...], _SystemEntries(key)], ())
        for key in settings
        if key not in of_systems
    }
    if not fields:
        return model
    return create_model(model.__name__, __base__=model, __module__=model.__module__, **fields)


def _require_own_sections(tenant: Tenant) -> None:
    for name in sorted(tenant.model_fields_set):
        if isinstance(getattr(tenant, name), _ProfileConfig) and name != tenant.profile:
            raise ConfigurationError(
                f"tenant {tenant.id!r}: {name}: these settings are for tenants with the profile"
                f" {name!r}, and this tenant has the profile {tenant.profile!r}",
                hint=f"remove {name} from the tenant, or set `profile: {name}`",
            )


def _require_project(tenant: Tenant) -> None:
    missing = [name for name in ("organization", "project") if not getattr(tenant, name)]
    if missing:
        raise ConfigurationError(
            f"tenant {tenant.id!r}: the profile {tenant.profile!r} requires the field {missing[0]}",
            hint="set organization and project, by which applications identify the tenant",
        )
