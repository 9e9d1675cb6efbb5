"""Searches of one build: started from the catalog's state, repeated if the build was discarded."""

from __future__ import annotations

from dataclasses import replace

from rag_assets.common.errors import IndexInconsistent, InvalidRequest
from rag_assets.search.access import MANY_SCOPES, FlatScopes, moved_pages
from rag_assets.search.model import MAX_PAGES, IndexFault, SearchRequest
from rag_assets.search.resolved_search import ResolvedSearch
from rag_assets.search.search_progress import SearchProgress
from rag_assets.search.steps.plan import SearchPlan, StepLists
from rag_assets.search.steps.protocol import SearchServices
from rag_assets.search.timings import Timings
from rag_assets.storage.catalog.builds.generations import Generation
from rag_assets.storage.catalog.builds.search_state import SearchState
from rag_assets.storage.catalog.database import TenantRef
from rag_assets.storage.index.model import NONE_MOVED, Owner


class BuildSearches:
    """Runs the steps of searches on builds of tenants.

    Args:
        services: passed to the steps.
        steps: the step lists of all profiles.
    """

    def __init__(self, services: SearchServices, steps: StepLists) -> None:
        self._services, self._steps = services, steps
        self._plans: dict[str, SearchPlan] = {}

    async def state(
        self, tenant_id: str, principals: tuple[str, ...], generation: int | None
    ) -> SearchState:
        """Return the catalog's state of a tenant at the start of a search.

        Args:
            principals: principals of the caller.
            generation: the build to search; None for the serving build.

        Raises:
            UnknownTenant: no tenant has this id.
            UnknownGeneration: the tenant has no such build.
            ServiceUnavailable: Postgres does not answer.
        """
        reader = self._services.reader
        if generation is None:
            # A custom policy narrows the scopes, so it needs all of them.
            most = MANY_SCOPES if type(self._services.policy) is FlatScopes else None
            return await reader.search_state(tenant_id, principals, most=most)
        return await reader.state_of_build(tenant_id, principals, generation)

    async def pages(
        self, ref: TenantRef, request: SearchRequest, principals: tuple[str, ...]
    ) -> tuple[str, ...] | None:
        """Return the ids of the pages that a request is limited to; None without such a limit.

        Raises:
            InvalidRequest: the request names too many pages.
        """
        named = request.filters.within
        if not named:
            return named
        reader = self._services.reader
        found = await reader.pages_within(ref.id, named, principals, most=MAX_PAGES)
        if len(found) > MAX_PAGES:
            raise InvalidRequest(
                f"filters.within: the pages and those below them are more than {MAX_PAGES:,}",
                hint="choose pages with fewer pages below them",
            )
        return tuple(found)

    def begun(
        self,
        tenant: SearchState,
        serving: Generation,
        search: ResolvedSearch,
        principals: tuple[str, ...],
        timings: Timings,
    ) -> SearchProgress:
        """Return the initial progress of a search, before its first step.

        Args:
            tenant: the catalog's state of the tenant.
            serving: the build to search.
            search: the resolved search.
            principals: principals of the caller.
            timings: collects the durations of the search's parts.
        """
        ref, caller = tenant.ref, search.request.caller
        scopes = None if tenant.are_some else self._services.policy.scopes(caller, tenant.scopes)
        return SearchProgress(
            search=search,
            ref=ref,
            serving=serving,
            owner=Owner(
                *(ref.id, ref.incarnation, serving.number, serving.digest_key),
                vectors_beside=serving.vectors_beside == "answering",
            ),
            caller=caller,
            principals=principals,
            scopes=scopes,
            moved=NONE_MOVED if scopes is None else moved_pages(tenant.moved, scopes),
            timings=timings,
        )

    async def run(self, progress: SearchProgress, *, named: bool) -> SearchProgress:
        """Search a build; if the build was discarded meanwhile, search the build that now serves.

        Args:
            progress: initial state of the search.
            named: whether the build was requested by its number.

        Raises:
            IndexInconsistent: the index was lost, and no other build serves.
        """
        lost: IndexInconsistent | None = None
        try:
            found = await self._with_vectors_settled(await self._search_once(progress), named=named)
            found = replace(found, index_fault=await self._index_fault(found))
        except IndexInconsistent as error:
            found, lost = progress, error
        if named or found.hits:
            return found
        tenant = await self.state(progress.ref.id, progress.principals, None)
        serving, is_same = tenant.serving, (tenant.ref, tenant.state) == (progress.ref, "ACTIVE")
        if is_same and serving is not None and serving.number != progress.serving.number:
            search = progress.search.in_build(serving)
            begun = self.begun(tenant, serving, search, progress.principals, progress.timings)
            begun = replace(begun, patience=progress.patience, pages=progress.pages)
            return await self.run(begun, named=False)
        if lost is not None:
            raise lost
        return found

    async def _with_vectors_settled(self, found: SearchProgress, *, named: bool) -> SearchProgress:
        """Remove the report of missing vectors if the build's vectors are back in its index.

        They may have moved back into the index after the search started; the index then answered
        with them.
        """
        if not found.vectors_away:
            return found
        number = found.serving.number
        tenant = await self.state(found.ref.id, found.principals, number if named else None)
        build = tenant.serving
        if build is None or build.number != number or build.vectors_beside == "answering":
            return found
        return replace(found, vectors_away=False)

    async def _index_fault(self, found: SearchProgress) -> IndexFault | None:
        """Return why the index of a search is incomplete; None if it is complete."""
        lacks_entries = await self._services.completeness.lacks_entries(
            found.serving.index_name, found.owner, is_doubtful=bool(found.replaced or found.unread)
        )
        if lacks_entries:
            return "entries missing"
        return "entries altered" if found.altered else None

    async def _search_once(self, progress: SearchProgress) -> SearchProgress:
        self._services.completeness.begin(progress.serving.index_name, progress.owner)
        plan = self._plan(progress.search.tenant.profile)
        # An added step may use all candidates in any way, so its search fetches complete rankings.
        return await plan.run(replace(progress, whole=not plan.is_trusted))

    def _plan(self, profile: str) -> SearchPlan:
        plan = self._plans.get(profile)
        if plan is None:
            plan = self._plans[profile] = self._steps.plan(profile, self._services)
        return plan
