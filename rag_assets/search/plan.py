"""Lists of search steps: how a profile's list is composed, and how it searches a build.

Three rules hold for every list:

- It contains the steps that verify candidates against the catalog and that read and check entries.
  These steps cannot be replaced.
- From the results of added steps, only recalled candidates, scores, and an order of verified texts
  are kept.
- After each added step, the catalog confirms the remaining candidates again.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from rag_assets.common.errors import ConfigurationError, IndexInconsistent, InvalidRequest
from rag_assets.plugins.registry import Systems, installed_systems
from rag_assets.search.access import MANY_SCOPES, FlatScopes, split_moved_pages
from rag_assets.search.hits import BudgetStep
from rag_assets.search.model import MAX_PAGES, IndexFault, SearchRequest
from rag_assets.search.progress import ResolvedSearch, SearchProgress, Timings
from rag_assets.search.read import GatherStep, JoinStep, ReadStep
from rag_assets.search.recall import RecallStep, VerifyStep
from rag_assets.search.scoring import FuseStep, RerankStep, ScoreStep
from rag_assets.search.services import SearchServices, Step, StepFactory, TrustedStep
from rag_assets.storage.catalog.builds.generations import Generation
from rag_assets.storage.catalog.builds.search_state import SearchState
from rag_assets.storage.catalog.database import TenantRef
from rag_assets.storage.index.model import NONE_MOVED, Owner

BUILT_IN: Mapping[str, StepFactory] = MappingProxyType(
    {
        "recall": RecallStep,
        "verify": VerifyStep,
        "fuse": FuseStep,
        "score": ScoreStep,
        "read": ReadStep,
        "join": JoinStep,
        "rerank": RerankStep,
        "gather": GatherStep,
        "budget": BudgetStep,
    }
)
"""The built-in steps by name, in their usual order."""

DEFAULT_STEPS: tuple[str, ...] = tuple(name for name in BUILT_IN if name != "join")

_REQUIRED = ("verify", "fuse", "read")
_BUILT_IN_TYPES = frozenset(BUILT_IN.values())
_OWN_PACKAGE_PREFIX = "rag_assets."
"""Modules of this project. A step in any other package is not trusted, whatever it declares."""
_BRIEF = frozenset({VerifyStep, FuseStep, ScoreStep, JoinStep, BudgetStep})
_VERIFIED_SECONDS = 1.0
"""Age in seconds after which a verification is repeated, since reading texts takes time."""
_MAX_REPEATS = 25
"""Maximum number of repeats of a search: the product of the limits in VerifyStep and ReadStep."""


@dataclass(frozen=True, slots=True)
class StepLists:
    """The available steps, and those that each profile uses.

    Attributes:
        added: steps of systems, by name.
        profiles: names of the steps of a search, by profile; profiles that are missing here use
            the default list.
    """

    added: Mapping[str, StepFactory] = field(default_factory=dict)
    profiles: Mapping[str, Sequence[str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if conflicts := sorted(BUILT_IN.keys() & self.added.keys()):
            raise ConfigurationError(
                f"retrieval step {conflicts[0]!r} is built in and cannot be replaced",
                hint="choose a different name for the system's step",
            )
        for profile, names in self.profiles.items():
            self._require_usable(profile, names)

    def plan(self, profile: str, services: SearchServices) -> SearchPlan:
        """Return the plan of a profile's searches; its steps use these services."""
        known = {**BUILT_IN, **self.added}
        names = tuple(self.profiles.get(profile) or DEFAULT_STEPS)
        return SearchPlan(tuple((name, known[name](services)) for name in names), services)

    def _require_usable(self, profile: str, names: Sequence[str]) -> None:
        where = f"retrieval steps of profile {profile!r}"
        if not names:
            return
        for name in names:
            if name not in BUILT_IN and name not in self.added:
                raise ConfigurationError(
                    f"{where}: unknown step {name!r}",
                    hint=f"use one of: {', '.join([*BUILT_IN, *sorted(self.added)])}",
                )
            if names.count(name) > 1:
                raise ConfigurationError(
                    f"{where}: the step {name!r} is listed twice", hint="list each step only once"
                )
        places = [names.index(name) if name in names else -1 for name in _REQUIRED]
        if -1 in places or places != sorted(places):
            raise ConfigurationError(
                f"{where}: the steps {', '.join(_REQUIRED)} are required, in this order",
                hint="add the missing steps, and correct the order",
            )
        _require_order(where, names, {**BUILT_IN, **self.added})


def load_installed_steps(systems: Systems | None = None) -> StepLists:
    """Return the steps that systems add, and the step lists that their profiles choose."""
    installed = systems or installed_systems()
    return StepLists(
        added=installed.load("retrieval_steps", reserved=BUILT_IN),
        profiles={name: profile.retrieval_steps for name, profile in installed.profiles.items()},
    )


def _require_order(where: str, names: Sequence[str], known: Mapping[str, StepFactory]) -> None:
    """Require that optional steps run where the data that they work on exists."""
    places = {name: place for place, name in enumerate(names)}
    rules = (
        ("recall", "before", "verify"),
        ("join", "after", "read"),
        ("score", "after", "fuse"),
        ("score", "before", "read"),
        ("rerank", "after", "read"),
        ("gather", "after", "read"),
        *_iter_rules_of_systems(names, known),
    )
    for name, relation, other in rules:
        is_used = name in places and other in places
        if is_used and (places[name] < places[other]) != (relation == "before"):
            raise ConfigurationError(
                f"{where}: the step {name!r} must come {relation} {other!r}",
                hint="change the order of the steps",
            )
    if "budget" in places and names[-1] != "budget":
        raise ConfigurationError(
            f"{where}: 'budget' must be the last step", hint="move it to the end"
        )


def _iter_rules_of_systems(
    names: Sequence[str], known: Mapping[str, StepFactory]
) -> Iterator[tuple[str, str, str]]:
    """Yield the order that trusted steps require, as (step, "before" or "after", other step)."""
    for name in names:
        factory = known[name]
        if isinstance(factory, type) and _is_trusted(factory) and issubclass(factory, TrustedStep):
            yield from ((name, "before", other) for other in factory.before)
            yield from ((name, "after", other) for other in factory.after)


def _is_trusted(kind: type) -> bool:
    """Return whether all changes made by steps of a class are kept (see SearchPlan)."""
    if kind in _BUILT_IN_TYPES:
        return True
    return issubclass(kind, TrustedStep) and kind.__module__.startswith(_OWN_PACKAGE_PREFIX)


class SearchPlan:
    """Runs the steps of a list.

    Changes by added steps are limited (see the module), unless the step is trusted.

    Raises:
        ConfigurationError: with this list, candidates would not be verified or entries would not be
            checked.
    """

    def __init__(self, steps: Sequence[tuple[str, Step]], services: SearchServices) -> None:
        kinds = [type(step) for _, step in steps]
        if VerifyStep not in kinds or ReadStep not in kinds[kinds.index(VerifyStep) :]:
            raise ConfigurationError(
                "a search needs the step 'verify', and the step 'read' after it",
                hint="add both to the profile's retrieval steps",
            )
        self._steps = tuple(steps)
        self._verify = VerifyStep(services)
        self._budget = BudgetStep(services)

    @property
    def is_trusted(self) -> bool:
        """Return whether every step is built in, or trusted as if it were."""
        return all(_is_trusted(type(step)) for _, step in self._steps)

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names of the steps, in order."""
        return tuple(name for name, _ in self._steps)

    async def run(self, progress: SearchProgress) -> SearchProgress:
        """Run all steps and return the progress with its hits."""
        at = repeats = 0
        while at < len(self._steps):
            name, step = self._steps[at]
            progress = await self._run_step(name, step, progress)
            if progress.repeat and repeats < _MAX_REPEATS:
                progress = replace(
                    progress, rankings=(), walk=None, verified=None, repeat=False, step_values={}
                )
                at, repeats = 0, repeats + 1
            else:
                at += 1
        return progress if progress.hits is not None else await self._budget.run(progress)

    async def _run_step(self, name: str, step: Step, before: SearchProgress) -> SearchProgress:
        if before.concurrent_walk is not None and type(step) is not RecallStep:
            before = await before.concurrent_walk(replace(before, concurrent_walk=None))
        if _is_trusted(type(step)):
            after = await step.run(before)
        else:
            with before.timings.measure(name):
                after = _admit_changes(before, await step.run(before))
        if after is not before and self._needs_verification(step, after):
            return await self._verify.verify_again(after)
        return after

    def _needs_verification(self, step: Step, after: SearchProgress) -> bool:
        """Return whether a step may have taken so long that access was revoked in the meantime.

        If so, the candidates are verified again. This holds for a reranker, and for steps that are
        not built in.
        """
        if after.verified is None or after.repeat or type(step) in _BRIEF:
            return False
        if type(step) in {ReadStep, GatherStep}:
            return time.monotonic() - after.verified.at > _VERIFIED_SECONDS
        return True


def _admit_changes(before: SearchProgress, after: SearchProgress) -> SearchProgress:
    """Return the progress with the changes that an added step is allowed to make.

    It may reorder, score and leave out candidates, and recall candidates before verification. It
    may change neither the owner of the search nor verified candidates and read entries.
    """
    if after is before:
        return before
    known_texts = {distinct.id: distinct for distinct in before.order}
    read = {passage.id: passage for passage in before.passages}
    return replace(
        before,
        rankings=after.rankings if before.verified is None else before.rankings,
        fused=after.fused,
        cosines=after.cosines,
        order=[known_texts[distinct.id] for distinct in after.order if distinct.id in known_texts],
        passages=[read[passage.id] for passage in after.passages if passage.id in read],
    )


class BuildSearches:
    """Runs the steps of searches on builds of tenants."""

    def __init__(self, services: SearchServices, steps: StepLists) -> None:
        self._services, self._steps = services, steps
        self._plans: dict[str, SearchPlan] = {}

    async def read_state(
        self, tenant_id: str, principals: tuple[str, ...], generation: int | None
    ) -> SearchState:
        """Return the catalog's state of a tenant, for a given build or the serving one."""
        reader = self._services.reader
        if generation is None:
            # A custom policy narrows the scopes, so it needs all of them.
            scope_limit = MANY_SCOPES if type(self._services.policy) is FlatScopes else None
            return await reader.search_state(tenant_id, principals, max_scopes=scope_limit)
        return await reader.state_of_build(tenant_id, principals, generation)

    async def list_pages(
        self, ref: TenantRef, request: SearchRequest, principals: tuple[str, ...]
    ) -> tuple[str, ...] | None:
        """Return the ids of the pages that a request is limited to; None without such a limit."""
        named = request.filters.within
        if not named:
            return named
        reader = self._services.reader
        pages = await reader.pages_within(ref.id, named, principals, max_pages=MAX_PAGES)
        if len(pages) > MAX_PAGES:
            raise InvalidRequest(
                f"filters.within: more than {MAX_PAGES:,} pages, including subpages",
                hint="choose pages with fewer subpages",
            )
        return tuple(pages)

    def build_progress(
        self,
        tenant: SearchState,
        serving: Generation,
        search: ResolvedSearch,
        principals: tuple[str, ...],
        timings: Timings,
    ) -> SearchProgress:
        """Return the initial progress of a search, before its first step."""
        ref, caller = tenant.ref, search.request.caller
        scopes = None if tenant.is_partial else self._services.policy.scopes(caller, tenant.scopes)
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
            moved=NONE_MOVED if scopes is None else split_moved_pages(tenant.moved, scopes),
            timings=timings,
        )

    async def run(self, progress: SearchProgress, *, names_build: bool) -> SearchProgress:
        """Search a build.

        If the build is discarded meanwhile, search the serving build, unless the request names a
        build (`names_build`).
        """
        lost: IndexInconsistent | None = None
        try:
            result = await self._settle_vectors(
                await self._search_once(progress), names_build=names_build
            )
            result = replace(result, index_fault=await self._find_index_fault(result))
        except IndexInconsistent as error:
            result, lost = progress, error
        if names_build or result.hits:
            return result
        tenant = await self.read_state(progress.ref.id, progress.principals, None)
        serving, is_same = tenant.serving, (tenant.ref, tenant.state) == (progress.ref, "ACTIVE")
        if is_same and serving is not None and serving.number != progress.serving.number:
            search = progress.search.for_generation(serving)
            first = self.build_progress(
                tenant, serving, search, progress.principals, progress.timings
            )
            first = replace(first, patience=progress.patience, pages=progress.pages)
            return await self.run(first, names_build=False)
        if lost is not None:
            raise lost
        return result

    async def _settle_vectors(self, result: SearchProgress, *, names_build: bool) -> SearchProgress:
        """Clear the report that vectors are missing if the build's index has them again."""
        if not result.uses_index_vectors:
            return result
        number = result.serving.number
        tenant = await self.read_state(
            result.ref.id, result.principals, number if names_build else None
        )
        build = tenant.serving
        if build is None or build.number != number or build.vectors_beside == "answering":
            return result
        return replace(result, uses_index_vectors=False)

    async def _find_index_fault(self, progress: SearchProgress) -> IndexFault | None:
        """Return why the index of a search is incomplete; None if it is complete."""
        lacks_entries = await self._services.completeness.lacks_entries(
            progress.serving.index_name,
            progress.owner,
            is_doubtful=bool(progress.replaced or progress.unread_ids),
        )
        if lacks_entries:
            return "entries missing"
        return "entries altered" if progress.altered_ids else None

    async def _search_once(self, progress: SearchProgress) -> SearchProgress:
        self._services.completeness.begin(progress.serving.index_name, progress.owner)
        plan = self._plan(progress.search.tenant.profile)
        # An added step may use all candidates in any way, so its search fetches complete rankings.
        return await plan.run(replace(progress, fetch_all=not plan.is_trusted))

    def _plan(self, profile: str) -> SearchPlan:
        plan = self._plans.get(profile)
        if plan is None:
            plan = self._plans[profile] = self._steps.plan(profile, self._services)
        return plan
