"""Reads the state that determines whether tenants are due: listings, and a few queries."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from rag_assets.billing.embedders import Embedders
from rag_assets.billing.spending import require_price
from rag_assets.common.batches import batched
from rag_assets.common.clock import Clock
from rag_assets.common.errors import BuildNotWritable, ListingFailed, ServiceUnavailable
from rag_assets.common.settings import Settings
from rag_assets.models.factory import get_embedder_id
from rag_assets.pipeline.clock_guard import ClockDoubt, get_deletion_time
from rag_assets.pipeline.fact_stores import find_unfinished_derivation, find_unfinished_follow_up
from rag_assets.pipeline.recipes import (
    compute_config_key,
    configure_tenant_for_build,
    find_wanted_build,
)
from rag_assets.pipeline.source_listing import (
    ListingDigest,
    compute_settings_key,
    compute_state_digest,
    open_sources,
)
from rag_assets.sensors.due import TenantState
from rag_assets.storage.catalog.builds.generations import Generation
from rag_assets.storage.catalog.builds.progress import WantedBuild, WorkLeft
from rag_assets.storage.catalog.builds.syncs import Sync
from rag_assets.storage.catalog.catalog import Catalog
from rag_assets.storage.catalog.tenants.table import TenantRecord
from rag_assets.tenants.model import Tenant

_BATCH_TENANTS = 100


@dataclass(frozen=True, slots=True)
class _Keys:
    """A tenant, with the keys that its configuration determines."""

    tenant: Tenant
    config: str
    embedder_id: str


class ParsedTenants:
    """Caches tenants parsed from their configuration, until the configuration changes."""

    def __init__(self) -> None:
        self._parsed: dict[str, tuple[TenantRecord, Tenant]] = {}

    def parse(self, embedders: Embedders, record: TenantRecord) -> Tenant:
        """Return the parsed tenant, with its resolved embedder."""
        known = self._parsed.get(record.id)
        if known is None or known[0] != record:
            known = record, Tenant.from_config(record.config)
            self._parsed[record.id] = known
        return embedders.choose_embedder_of(record, known[1])


def read_tenant_state(
    catalog: Catalog, record: TenantRecord, tenant: Tenant, settings: Settings
) -> TenantState:
    """Read a tenant's state; list the sources only if the catalog shows no pending work.

    Raises:
        ConfigurationError: spending caps are set, but the price is unknown.
    """
    return _read_state(catalog, _read_facts(catalog, [_compute_keys(tenant)])[record.id], settings)


def read_tenant_states(
    catalog: Catalog, records: Iterable[TenantRecord], parsed: ParsedTenants, settings: Settings
) -> Iterator[tuple[TenantRecord, TenantState | Exception]]:
    """Read the states of many tenants, one after the other, as the caller iterates.

    The sources are listed only of tenants without pending work.

    Yields:
        each tenant with its state, or with the error that prevented reading it.

    Raises:
        ServiceUnavailable: Postgres does not respond.
    """
    embedders = Embedders(catalog, settings)
    for batch in batched(list(records), _BATCH_TENANTS):
        failed: dict[str, Exception] = {}
        keys = []
        for record in batch:
            try:
                keys.append(_compute_keys(parsed.parse(embedders, record)))
            except ServiceUnavailable:
                raise
            except Exception as error:  # an error of one tenant must not stop the others
                failed[record.id] = error
        facts = _read_facts(catalog, keys)
        for record in batch:
            yield (
                record,
                failed.get(record.id) or _read_state_or_error(catalog, facts[record.id], settings),
            )


def _read_state_or_error(
    catalog: Catalog, facts: _Facts, settings: Settings
) -> TenantState | Exception:
    try:
        return _read_state(catalog, facts, settings)
    except ServiceUnavailable:
        raise
    except Exception as error:  # an error of one tenant must not stop the others
        return error


def _read_state(catalog: Catalog, facts: _Facts, settings: Settings) -> TenantState:
    work_left, tenant = facts.left, facts.keys.tenant
    if not (work_left.pending or work_left.removals or work_left.partly_replaced):
        return _build_state(catalog, facts, *_list_sources(catalog, tenant, settings))
    recorded = {
        config.name: sync.listing_digest or ""
        for config in tenant.sources
        if (sync := facts.syncs.get(config.name)) is not None
    }
    return replace(_build_state(catalog, facts, recorded, {}), is_listed=False)


def _compute_keys(tenant: Tenant) -> _Keys:
    require_price(tenant)
    embedder_id = get_embedder_id(tenant.embedder)
    return _Keys(tenant, compute_config_key(tenant, embedder_id), embedder_id)


@dataclass(frozen=True, slots=True)
class _Facts:
    """The catalog's facts about a tenant.

    Attributes:
        config_key: key of the configuration of the wanted build.
    """

    keys: _Keys
    config_key: str
    live: Sequence[Generation]
    syncs: Mapping[str, Sync]
    left: WorkLeft
    is_clock_trusted: bool


def _read_facts(catalog: Catalog, keys: Sequence[_Keys]) -> dict[str, _Facts]:
    """Read the facts about tenants in a few queries for all of them; return them by tenant."""
    # With a wrong time, runs would be requested again and again, and prune no document.
    is_clock_trusted = not isinstance(get_deletion_time(catalog, Clock()), ClockDoubt)
    ids = [of.tenant.id for of in keys]
    if not ids:
        return {}
    syncs = catalog.syncs.of_tenants(ids)
    live = catalog.generations.list_live_by_tenant(ids)
    wanted_builds = [_list_wanted_builds(of, live.get(of.tenant.id, ())) for of in keys]
    work_left = catalog.work.read([build for builds in wanted_builds for build in builds])
    return {
        id_: _Facts(
            of,
            builds[0].config_key,
            live.get(id_, ()),
            syncs.get(id_, {}),
            work_left[id_],
            is_clock_trusted,
        )
        for id_, of, builds in zip(ids, keys, wanted_builds, strict=True)
    }


def _find_next_expiry(facts: _Facts) -> datetime | None:
    """Return when the next document is due for pruning; None if no document expires.

    Sources whose pruning a person must allow are not counted. While the clock is not trusted, the
    result is None.
    """
    if not facts.is_clock_trusted:
        return None
    sources_with_held_prunes = {name for name, sync in facts.syncs.items() if sync.held_prunes}
    get_days = facts.keys.tenant.get_retention_days
    expiries = [
        since + timedelta(days=days)
        for (source, source_type), since in facts.left.oldest.items()
        if source not in sources_with_held_prunes and (days := get_days(source_type)) is not None
    ]
    return min(expiries, default=None)


def _list_wanted_builds(keys: _Keys, live: Sequence[Generation]) -> list[WantedBuild]:
    """Return the builds that runs write: the wanted build, and the serving build if it differs.

    A serving build that cannot be written is left out. The wanted build may be older than
    others, if the configuration returned to an earlier state.
    """
    build = find_wanted_build(live, keys.tenant, keys.embedder_id)
    serving = next((g for g in live if g.state == "SERVING"), None)
    if build is None:
        builds = [WantedBuild(keys.tenant.id, 0, keys.config)]
    else:
        key = _find_config_key(keys, build) if build.pinned else keys.config
        builds = [WantedBuild(keys.tenant.id, build.number, key or keys.config)]
    if (
        serving is not None
        and serving != build
        and (key := _find_config_key(keys, serving)) is not None
    ):
        builds.append(WantedBuild(keys.tenant.id, serving.number, key, is_superseded=True))
    return builds


def _find_config_key(keys: _Keys, build: Generation) -> str | None:
    """Return the key of the configuration of a build; None if the build cannot be written."""
    try:
        return compute_config_key(
            configure_tenant_for_build(keys.tenant, keys.embedder_id, build), build.embedder_id
        )
    except BuildNotWritable:
        return None


def _list_sources(
    catalog: Catalog, tenant: Tenant, settings: Settings
) -> tuple[dict[str, str], dict[str, str]]:
    """Return the digests of a tenant's sources, and why sources could not be listed."""
    digests: dict[str, str] = {}
    unlisted: dict[str, str] = {}
    for config, source in zip(tenant.sources, open_sources(tenant, settings, catalog), strict=True):
        settings_of_source = compute_settings_key(tenant, config)
        known = compute_state_digest(source, settings_of_source)
        if known is not None:
            digests[source.name] = known
            continue
        digest = ListingDigest(settings_of_source)
        try:
            for _ in digest.list_source(source):
                pass
        except ListingFailed as error:
            unlisted[source.name] = error.message
        else:
            digests[source.name] = digest.hexdigest()
    return digests, unlisted


def _build_state(
    catalog: Catalog, facts: _Facts, digests: Mapping[str, str], unlisted: Mapping[str, str]
) -> TenantState:
    tenant, work_left = facts.keys.tenant, facts.left
    build = find_wanted_build(facts.live, tenant, facts.keys.embedder_id)
    serving = next((build.number for build in facts.live if build.state == "SERVING"), None)
    unfinished = find_unfinished_follow_up(tenant.profile, catalog, tenant.id)
    if not unfinished and serving is not None and not work_left.pending:
        unfinished = find_unfinished_derivation(catalog, tenant, serving)
    return TenantState(
        tenant_id=tenant.id,
        digests=digests,
        unlisted=unlisted,
        config_key=facts.config_key,
        syncs=facts.syncs,
        pending=work_left.pending,
        removals=work_left.removals,
        partly_replaced=work_left.partly_replaced,
        recently_changed=sum(work_left.read_again.get(source, 0) for source in digests),
        next_expiry=_find_next_expiry(facts),
        unpublished=build is not None and build.state == "COMPLETE" and tenant.publish == "auto",
        unfinished=unfinished,
    )
