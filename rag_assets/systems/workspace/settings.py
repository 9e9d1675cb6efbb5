"""Settings of workspaces: their allowed values and their effects.

The last step of a sync copies vectors to pgvector if the settings choose it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from ipaddress import ip_address
from typing import Annotated, Any
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field

from rag_assets.api.backend import Backend
from rag_assets.api.knowledge_routes import find_pending_model, get_model_name
from rag_assets.api.workspace_responses import Settings
from rag_assets.common.clock import Clock
from rag_assets.common.errors import (
    ConfigurationError,
    ConfiguredByOperator,
    InvalidRequest,
    NoVectorBackend,
    VectorsUnavailable,
)
from rag_assets.common.private_endpoints import PrivateEndpoints
from rag_assets.models.config import MAX_DIMENSIONS, EmbedderConfig
from rag_assets.models.embedding.model_folder import DEFAULT_MODEL
from rag_assets.models.factory import build_embedder
from rag_assets.models.providers.local import LOCAL
from rag_assets.models.transport.settings import BaseUrl, ModelName
from rag_assets.pipeline.context import VECTORS_PAUSE, TenantContext
from rag_assets.pipeline.separate_vectors import drop_vectors, fill_vectors
from rag_assets.privacy.masker import Masker
from rag_assets.storage.catalog.builds.generations import Generation, VectorsBeside
from rag_assets.storage.catalog.catalog import Catalog
from rag_assets.storage.catalog.tenants.table import TenantRecord
from rag_assets.storage.index.pgvector.tables import PgVectors
from rag_assets.systems.workspace.errors import require_workspace
from rag_assets.tenants.application_settings import (
    COMPATIBLE,
    SELF_HOSTED,
    ApplicationSettings,
    Provider,
    VectorBackend,
    find_wanted_embedder,
    overlay_settings,
)
from rag_assets.tenants.model import Tenant
from rag_assets.tenants.profiles import get_configured_embedder

_SHOWN_FIELDS = tuple(
    field
    for field in ApplicationSettings.__dataclass_fields__
    if field not in {"embedder", "updated_at", "updated_by"}
)


class SettingsDraft(BaseModel):
    """The settings that an application changes.

    Omitted settings stay unchanged; null restores the operator's configuration.

    Attributes:
        enabled: whether the workspace is indexed and answers.
        provider: provider of embeddings. localai and ollama require the dimensions of their model
            and a base_url that the operator allows.
        embedding_model: the model's name at its provider.
        base_url: URL of a localai or ollama server.
        dimensions: length of a vector.
        vector_backend: the store that answers vector searches.
        resolved_comment_days: days after which a resolved comment is no longer found.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    enabled: Annotated[bool, Field(strict=True)] | None = None
    provider: Provider | None = None
    embedding_model: ModelName | None = None
    base_url: BaseUrl | None = None
    dimensions: Annotated[int, Field(strict=True, ge=1, le=MAX_DIMENSIONS)] | None = None
    vector_backend: VectorBackend | None = None
    resolved_comment_days: Annotated[int, Field(strict=True, ge=0, le=36_500)] | None = None


class SettingsService:
    """Reads and changes the settings of workspaces.

    Args:
        allowed: endpoints that the operator allows for models.
        vectors: the pgvector store; None if not configured.
    """

    def __init__(
        self,
        catalog: Catalog,
        allowed: PrivateEndpoints,
        masker: Masker,
        vectors: PgVectors | None,
    ) -> None:
        self._catalog = catalog
        self._allowed = allowed
        self._masker = masker
        self._vectors = vectors

    @classmethod
    def from_backend(cls, backend: Backend) -> SettingsService:
        """Create the service from the catalog and other components of the API's backend."""
        allowed, masker = backend.embedders.settings.private_endpoints, backend.retriever.masker
        return cls(backend.catalog, allowed, masker, backend.vectors)

    def get(self, tenant_id: str) -> Settings:
        """Return the effective settings of a workspace.

        Raises:
            UnknownTenant: no tenant has this id.
            NoWorkspace: the tenant is not a workspace.
        """
        return build_settings_response(self._require_workspace(tenant_id))

    def change(self, tenant_id: str, draft: SettingsDraft, by: str) -> Settings:
        """Change the settings in the draft.

        Switching a workspace on indexes all of it again. A new model takes effect only then, or
        when a complete indexing is requested; in a workspace that was never indexed, it takes
        effect immediately.

        Raises:
            InvalidRequest: the settings contradict each other, or the operator does not allow them.
            ConfiguredByOperator: the operator has disabled the workspace.
            NoVectorBackend: pgvector is not available.
        """
        record = self._require_workspace(tenant_id)
        self._require_allowed(draft)
        if draft.enabled is True and "ACTIVE" not in {record.state, record.configured_state}:
            raise ConfiguredByOperator(
                f"the operator has disabled tenant {tenant_id!r}",
                hint="ask the operator to enable the tenant",
            )

        def apply_draft(
            settings: ApplicationSettings, operators: Mapping[str, Any], is_unused: bool
        ) -> ApplicationSettings:
            drafted = replace(settings, **draft.model_dump(include=draft.model_fields_set))
            wanted_embedder = find_wanted_embedder(drafted, get_configured_embedder(operators))
            _require_usable(operators, replace(drafted, embedder=wanted_embedder))
            return replace(drafted, embedder=wanted_embedder) if is_unused else drafted

        self._catalog.application_settings.change(record.ref, apply_draft, by)
        present = self._catalog.tenants.get(tenant_id)
        if Tenant.from_config(present.config).workspace.vector_backend != "pgvector":
            self._stop_pgvector_searches(record)
        return build_settings_response(present)

    def _stop_pgvector_searches(self, record: TenantRecord) -> None:
        """Stop searches in pgvector immediately; the next sync deletes the vectors there."""
        serving = self._catalog.generations.serving(record.id)
        if serving is not None and serving.vectors_beside == "answering":
            self._catalog.generations.set_vectors_state(record.ref, serving, "filling")

    def _require_workspace(self, tenant_id: str) -> TenantRecord:
        return require_workspace(self._catalog.tenants.get(tenant_id), "settings")

    def _require_allowed(self, draft: SettingsDraft) -> None:
        for name in ("embedding_model", "base_url"):
            value = getattr(draft, name)
            if value is not None and self._masker.holds_credential(value):
                raise InvalidRequest(
                    f"{name}: the value contains a credential, but it is stored and shown unmasked",
                    hint="remove the credential, and store it as a key for the provider",
                )
        if draft.base_url is not None and not self._is_allowed(draft.base_url):
            raise InvalidRequest(
                "base_url: the operator does not allow this server",
                hint="ask the operator to add the server to RAG_ASSETS_PRIVATE_ENDPOINTS",
            )
        if draft.vector_backend == "pgvector":
            if self._vectors is None:
                raise NoVectorBackend(
                    "no Postgres with pgvector is configured",
                    hint="remove vector_backend from the request",
                )
            self._vectors.require()

    def _is_allowed(self, base_url: str) -> bool:
        url = urlsplit(base_url)
        host, port = url.hostname or "", url.port or (443 if url.scheme == "https" else 80)
        if self._allowed.allows_name(host, port):
            return True
        try:
            return self._allowed.allows_address(ip_address(host))
        except ValueError:
            return False


def build_settings_response(record: TenantRecord) -> Settings:
    """Return the API's response with the effective settings of a workspace."""
    settings = record.settings
    tenant = Tenant.from_config(record.config)
    embedder = tenant.embedder
    # localai and ollama share one embedder, so the provider's name is returned as it was set.
    own = settings.embedder is not None and embedder.provider == COMPATIBLE
    hosted = own and settings.provider in SELF_HOSTED
    return Settings(
        enabled=record.state == "ACTIVE",
        provider=settings.provider if hosted and settings.provider else embedder.provider,
        embedding_model=get_model_name(embedder),
        dimensions=embedder.dimensions,
        base_url=embedder.base_url,
        pending_model=find_pending_model(record),
        vector_backend=tenant.workspace.vector_backend,
        resolved_comment_days=tenant.workspace.resolved_comment_days,
        own=tuple(name for name in _SHOWN_FIELDS if getattr(settings, name) is not None),
        updated_at=settings.updated_at,
        updated_by=settings.updated_by,
    )


def _require_usable(operators: Mapping[str, Any], settings: ApplicationSettings) -> None:
    if settings.base_url is not None and settings.provider not in SELF_HOSTED:
        raise InvalidRequest(
            "base_url: only the providers localai and ollama accept a base_url",
            hint="set provider to localai or ollama, or remove base_url",
        )
    try:
        embedder = Tenant.from_config(overlay_settings(operators, settings)).embedder
    except ConfigurationError as error:
        raise InvalidRequest(
            f"the settings contradict each other: {error.message}",
            hint="set provider, embedding_model, base_url and dimensions to values that match"
            " each other",
        ) from None
    if embedder.provider == LOCAL.name and embedder.path is None:
        _require_dimensions(embedder.model or DEFAULT_MODEL, settings.dimensions)


def _require_dimensions(model: str, dimensions: int | None) -> None:
    """Refuse dimensions that a local model does not produce: no build would ever be complete."""
    try:
        own = build_embedder(EmbedderConfig(model=model)).dimensions
    except ConfigurationError as error:
        raise InvalidRequest(error.message, hint=error.hint) from None
    if dimensions not in {None, own}:
        raise InvalidRequest(
            f"the settings contradict each other: {model} produces vectors of {own}"
            f" dimensions, not {dimensions}",
            hint="set dimensions to null to use the model's own dimensions",
        )


class WorkspaceFollowUp:
    """Copies vectors from the serving index to pgvector, or deletes them there (see FollowUp)."""

    def unfinished(self, catalog: Catalog, tenant_id: str) -> str | None:
        """Return why a tenant needs a run although no source changed; None if it needs none."""
        serving = catalog.generations.serving(tenant_id)
        if serving is None:
            return None
        record = catalog.tenants.get(tenant_id)
        backend = record.config.get("workspace", {}).get("vector_backend")
        remaining_work = _describe_remaining_work(serving, is_wanted=backend == "pgvector")
        pause = serving.vectors_retry_at
        return None if pause is not None and Clock().now() < pause else remaining_work

    def kept_texts(self, catalog: Catalog, tenant_id: str) -> frozenset[str]:
        """Return an empty set: only the texts of passages have vectors."""
        return frozenset()

    def finish(self, ctx: TenantContext, serving: Generation) -> Mapping[str, Any]:
        """Copy vectors to pgvector or delete them there; return the result as run metadata.

        If pgvector's server does not respond, a later run does it.
        """
        uses_pgvector = ctx.tenant.workspace.vector_backend == "pgvector"
        if (
            ctx.store.vectors is None
            or _describe_remaining_work(serving, is_wanted=uses_pgvector) is None
        ):
            return {}
        try:
            work = fill_vectors if uses_pgvector else drop_vectors
            done = work(ctx, serving, ctx.store.vectors)
        except (VectorsUnavailable, NoVectorBackend) as error:
            table = ctx.catalog.generations
            # A copy that is unfinished or that missed a write must not answer searches.
            state: VectorsBeside | None = "filling" if serving.vectors_beside else None
            retry_at = ctx.clock.now() + VECTORS_PAUSE
            table.set_vectors_state(ctx.ref, serving, state, retry_at=retry_at)
            return {"pgvector": error.message}
        return {"pgvector": done.vectors_beside or "no vectors"}


FOLLOW_UP = WorkspaceFollowUp()


def _describe_remaining_work(serving: Generation, *, is_wanted: bool) -> str | None:
    if is_wanted and serving.vectors_beside != "answering":
        return "vectors wait to be copied to pgvector"
    if not is_wanted and serving.vectors_beside is not None:
        return "vectors in pgvector wait to be deleted"
    return None
