"""Settings outside of tenants.yaml: settings of organizations, and settings by applications."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, fields, replace
from datetime import datetime
from enum import Enum
from typing import Any, Final, TypeAlias

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.dialects.postgresql import insert as upsert

from rag_assets.models.config import EmbedderConfig
from rag_assets.models.factory import have_same_vectors
from rag_assets.storage.catalog.database import (
    TENANTS,
    CatalogQueries,
    TenantRef,
    build_row_upsert,
    notify,
    read_row,
    write_event,
)
from rag_assets.storage.catalog.documents.status import request_reindex
from rag_assets.storage.catalog.records.model import start_waits_of_comments
from rag_assets.storage.catalog.tables import (
    document_index,
    json_column,
    metadata,
    now_column,
    organizations,
    tenant_column,
    tenants,
)
from rag_assets.tenants.application_settings import (
    ApplicationSettings,
    find_settled_embedder,
    find_wanted_embedder,
    overlay_settings,
)
from rag_assets.tenants.profiles import DEFAULT_PROFILE, get_configured_embedder, get_profile


class Unchanged(Enum):
    """The type of UNCHANGED, a default argument that leaves a setting as it is."""

    UNCHANGED = 0


UNCHANGED: Final = Unchanged.UNCHANGED
"""The value of a parameter that leaves a setting unchanged, if None is a valid value."""


@dataclass(frozen=True, slots=True)
class OrganizationRef:
    """An organization's id, as the owner of keys."""

    id: str


@dataclass(frozen=True, slots=True)
class Organization:
    """One row of `organizations`."""

    id: str
    has_opted_in: bool
    chat_model: str | None
    updated_at: datetime


class OrganizationTable(CatalogQueries):
    """Reads and changes the settings of organizations, in `organizations`."""

    def all(self) -> list[Organization]:
        """Return every organization, sorted by id."""
        query = sa.select(organizations).order_by(organizations.c.id)
        return [read_row(Organization, row) for row in self._database.fetch_rows(query)]

    def find(self, organization_id: str) -> Organization | None:
        """Return an organization; None if it is not stored."""
        query = sa.select(organizations).where(organizations.c.id == organization_id)
        row = self._database.fetch_row(query)
        return read_row(Organization, row) if row else None

    def put(
        self,
        organization_id: str,
        *,
        has_opted_in: bool | Unchanged = UNCHANGED,
        chat_model: str | Unchanged | None = UNCHANGED,
    ) -> tuple[Organization, bool]:
        """Change settings of an organization; settings that are not passed stay as they are.

        If a setting changes, the configuration of its projects counts as changed, too.

        Returns:
            the organization, and whether anything changed.
        """
        settings: dict[str, Any] = {"has_opted_in": has_opted_in, "chat_model": chat_model}
        settings = {name: value for name, value in settings.items() if value is not UNCHANGED}
        columns = organizations.c
        with self._database.begin() as connection:
            add_organizations(connection, [organization_id])
            differs = [columns[name].is_distinct_from(value) for name, value in settings.items()]
            changed = (
                sa.update(organizations)
                .where(columns.id == organization_id, sa.or_(False, *differs))
                .values(**settings, updated_at=sa.func.clock_timestamp())
            )
            has_changed = bool(settings) and connection.execute(changed).rowcount > 0
            if has_changed:
                follow = sa.update(tenants).where(tenants.c.organization == organization_id)
                connection.execute(follow.values(updated_at=sa.func.clock_timestamp()))
                notify(connection, TENANTS)
            query = sa.select(organizations).where(columns.id == organization_id)
            return read_row(Organization, connection.execute(query).one()), has_changed


def add_organizations(connection: sa.Connection, organization_ids: Iterable[str]) -> None:
    """Add organizations that do not exist yet, without settings."""
    rows = [{"id": organization_id} for organization_id in organization_ids]
    if rows:
        connection.execute(upsert(organizations).values(rows).on_conflict_do_nothing())


rag_settings = sa.Table(
    "rag_settings",
    metadata,
    tenant_column(),
    # The operator's configuration, without the application's settings; tenants.config combines
    # both.
    json_column("operator_config"),
    sa.Column("operator_enabled", sa.Boolean, nullable=False),
    sa.Column("enabled", sa.Boolean),
    sa.Column("provider", sa.Text),
    sa.Column("embedding_model", sa.Text),
    sa.Column("base_url", sa.Text),
    sa.Column("dimensions", sa.Integer),
    sa.Column("vector_backend", sa.Text),
    sa.Column("resolved_comment_days", sa.Integer),
    # The embedder that is in force, as in tenants.yaml; null: the operator's embedder.
    sa.Column("embedder", JSONB(none_as_null=True)),
    now_column("updated_at"),
    sa.Column("updated_by", sa.Text, nullable=False),
    sa.CheckConstraint(
        "provider IN ('openai', 'gemini', 'localai', 'ollama', 'local')", name="provider"
    ),
    sa.CheckConstraint("vector_backend IN ('elasticsearch', 'pgvector')", name="vector_backend"),
)
"""Settings that an application or a member gave a tenant, beside the operator's configuration."""

Change: TypeAlias = Callable[[ApplicationSettings, Mapping[str, Any], bool], ApplicationSettings]
"""Computes the new settings from the current settings, the operator's configuration, and whether
the tenant has no indexed document."""

_OPERATOR = "operator"
_SETTINGS = tuple(field.name for field in fields(ApplicationSettings))
_SETTABLE = frozenset(_SETTINGS) - {"updated_at", "updated_by"}


class ApplicationSettingsTable(CatalogQueries):
    """Changes the settings of a tenant's application, and updates the effective configuration."""

    def change(
        self, ref: TenantRef, change: Change, by: str
    ) -> tuple[ApplicationSettings, ApplicationSettings]:
        """Change the settings of a tenant; return the former and the new settings.

        Concurrent changes run one after another. If the change enables the tenant, its pending
        embedding model takes effect, and all its documents are indexed again.
        """
        with self._database.begin_exclusive(ref) as connection:
            row = connection.execute(_select_settings(ref.id)).one()
            operators = row.config if row.operator_config is None else row.operator_config
            may_be = row.state == "ACTIVE" if row.operator_enabled is None else row.operator_enabled
            former = read_settings(row)
            present = change(former, operators, _is_unused(connection, ref.id))
            if _build_setting_columns(present) == _build_setting_columns(former):
                return former, former
            enabled = may_be and present.enabled is not False
            begins = enabled and row.state != "ACTIVE"
            if begins:
                wanted = find_wanted_embedder(present, get_configured_embedder(operators))
                present = replace(present, embedder=wanted)
            values = {
                **_build_setting_columns(present),
                "operator_config": operators,
                "operator_enabled": may_be,
                "updated_at": sa.func.clock_timestamp(),
                "updated_by": by,
            }
            connection.execute(build_row_upsert(rag_settings, {"tenant": ref.id}, values))
            config = overlay_settings(operators, present)
            start_waits_of_comments(connection, ref.id, row.config, config)
            connection.execute(
                sa.update(tenants)
                .where(tenants.c.id == ref.id)
                .values(
                    config=config,
                    state="ACTIVE" if enabled else "DISABLED",
                    updated_at=sa.func.clock_timestamp(),
                )
            )
            payload = {"by": by, "changed": sorted(_list_changed_names(former, present))}
            write_event(connection, ref.id, "settings_changed", payload)
            notify(connection, TENANTS)
            if begins:
                request_reindex(connection, ref, {"scope": "tenant", "by": by})
            saved = connection.execute(_select_settings(ref.id)).one()
        return former, read_settings(saved)

    def take_pending_model(self, ref: TenantRef, by: str) -> bool:
        """Use the pending embedding model for the next build; return whether one was pending."""

        def take_over(
            settings: ApplicationSettings, operators: Mapping[str, Any], _: bool
        ) -> ApplicationSettings:
            wanted = find_wanted_embedder(settings, get_configured_embedder(operators))
            return replace(settings, embedder=wanted)

        former, present = self.change(ref, take_over, by)
        return former.embedder != present.embedder


def list_setting_columns() -> list[sa.ColumnElement[Any]]:
    """Return the columns with a tenant's settings, which read_settings() reads."""
    own = rag_settings.c
    named = [own[name] for name in _SETTINGS if name not in {"updated_at", "updated_by"}]
    return [
        *named,
        own.updated_at.label("settings_at"),
        own.updated_by.label("settings_by"),
        own.operator_config,
        own.operator_enabled,
    ]


def read_settings(row: sa.Row[Any]) -> ApplicationSettings:
    """Return the settings in a row with list_setting_columns()."""
    values = {name: getattr(row, name) for name in _SETTABLE}
    return ApplicationSettings(**values, updated_at=row.settings_at, updated_by=row.settings_by)


def apply_operator_config(
    connection: sa.Connection, tenant_id: str, config: Mapping[str, Any], *, enabled: bool
) -> tuple[Mapping[str, Any], bool]:
    """Apply a new configuration of the operator; the application's settings still override it.

    A new model with different vectors must wait until the tenant is fully indexed again, if the
    profile requires that and the tenant has entries. Until then the former model is in force.

    Returns:
        the effective configuration, and whether the tenant is enabled.
    """
    # Concurrent changes of settings wait for this change.
    row = connection.execute(
        _select_settings(tenant_id).with_for_update(key_share=True, of=tenants)
    ).first()
    if row is None:
        return config, enabled
    former = read_settings(row)
    present = replace(former, embedder=_find_embedder_in_force(connection, tenant_id, row, config))
    in_force = overlay_settings(config, present)
    start_waits_of_comments(connection, tenant_id, row.config, in_force)
    values: dict[str, Any] = {"operator_config": dict(config), "operator_enabled": enabled}
    if present.embedder != former.embedder:
        values |= {"embedder": present.embedder}
        payload = {"by": _OPERATOR, "changed": ["embedder"]}
        write_event(connection, tenant_id, "settings_changed", payload)
    elif row.operator_config is None:
        # Its application has not set anything.
        return config, enabled
    connection.execute(
        upsert(rag_settings)
        .values(tenant=tenant_id, updated_by=_OPERATOR, **values)
        .on_conflict_do_update(index_elements=["tenant"], set_=values)
    )
    return in_force, enabled and present.enabled is not False


def _find_embedder_in_force(
    connection: sa.Connection, tenant_id: str, row: sa.Row[Any], config: Mapping[str, Any]
) -> Mapping[str, Any] | None:
    """Return the embedder in force after the operator changed a tenant's configuration.

    None means the embedder of the operator's configuration.
    """
    settings = read_settings(row)
    before = row.config if row.operator_config is None else row.operator_config
    former, operators = get_configured_embedder(before), get_configured_embedder(config)
    if former == operators or not (_is_model_kept(before) and _is_model_kept(config)):
        return settings.embedder
    if _is_unused(connection, tenant_id):
        return find_wanted_embedder(settings, operators)
    return find_settled_embedder(settings, former, operators, is_same=_have_same_vectors)


def _is_model_kept(config: Mapping[str, Any]) -> bool:
    """Return whether a tenant keeps its former model until all its documents are reindexed."""
    return get_profile(config.get("profile", DEFAULT_PROFILE)).keeps_model


def _is_unused(connection: sa.Connection, tenant_id: str) -> bool:
    """Return whether no build of the tenant has a document that searches can find."""
    row = document_index.c
    indexed = sa.exists().where(row.tenant == tenant_id, row.indexed_key.is_not(None))
    return not connection.scalar(sa.select(indexed))


def _have_same_vectors(first: Mapping[str, Any], second: Mapping[str, Any]) -> bool:
    try:
        configs = [EmbedderConfig.model_validate(embedder) for embedder in (first, second)]
    except ValueError:
        return False
    return have_same_vectors(*configs)


def _select_settings(tenant_id: str) -> sa.Select[Any]:
    return (
        sa.select(tenants.c.config, tenants.c.state, *list_setting_columns())
        .select_from(tenants.outerjoin(rag_settings, rag_settings.c.tenant == tenants.c.id))
        .where(tenants.c.id == tenant_id)
    )


def _build_setting_columns(settings: ApplicationSettings) -> dict[str, Any]:
    return {name: value for name, value in asdict(settings).items() if name in _SETTABLE}


def _list_changed_names(former: ApplicationSettings, present: ApplicationSettings) -> set[str]:
    before, after = _build_setting_columns(former), _build_setting_columns(present)
    return {name for name in _SETTABLE if before[name] != after[name]}
