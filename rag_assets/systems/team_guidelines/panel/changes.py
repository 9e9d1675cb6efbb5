"""What another provider would cost, and how far a build is that takes another one's place."""

from __future__ import annotations

from dataclasses import dataclass, replace

from rag_assets.storage.catalog.catalog import Catalog
from rag_assets.storage.catalog.generations import Generation
from rag_assets.systems.team_guidelines.projects import OpenProject
from rag_assets.tenants.projects import Project, ProjectSettings, project_config

_UNDER_WAY = frozenset({"BUILDING", "COMPLETE"})


@dataclass(frozen=True, slots=True)
class ProviderChange:
    """A change of provider, before it is made.

    Attributes:
        embedder: that follows from it.
        same: whether that is the present one, so that nothing is embedded.
        documents, passages, tokens: that are embedded anew.
        cost: in dollars; None if no price is known.
        seconds: of embedding; None where this embedder was never measured on this project.
        lacks_key: whether its provider has no key here yet.
    """

    provider: str
    embedder: str
    same: bool
    documents: int
    passages: int
    tokens: int
    cost: float | None
    seconds: float | None
    lacks_key: bool


@dataclass(frozen=True, slots=True)
class Replacement:
    """A build that will take another one's place.

    Attributes:
        embedder, former: of the two builds; the former answers meanwhile.
        begun: whether it is there; a change of provider waits for the next run of the chain.
        documents, of_documents: that it holds, and all.
    """

    embedder: str
    former: str | None
    begun: bool
    documents: int
    of_documents: int


def provider_change(catalog: Catalog, project: OpenProject, provider: str) -> ProviderChange:
    """What a change of provider brings.

    Raises:
        InvalidRequest: the project cannot have that provider.
    """
    record = project.record
    named = Project(record.config["profile"], project.organization_id, project.project_id)
    settings = ProjectSettings.model_validate({"provider": provider})
    config = project_config(named, record.id, settings, beginning={}, present=record.config)
    changed = OpenProject(replace(record, config=config), project.embedders)
    states = [state for state in catalog.upload_states.page(record.id) if state.answers]
    passages = sum(state.chunk_count for state in states)
    tokens = sum(state.token_count or 0 for state in states)
    same = changed.embedder_id == project.embedder_id
    rate = _rate(catalog.generations.live(record.id), changed.embedder_id)
    return ProviderChange(
        provider=provider,
        embedder=changed.embedder_id,
        same=same,
        documents=len(states),
        passages=passages,
        tokens=tokens,
        cost=None if changed.price is None else changed.price.of(tokens),
        seconds=None if rate is None else passages / rate,
        lacks_key=changed.choice.key == "missing",
    )


def replacement(catalog: Catalog, project: OpenProject) -> Replacement | None:
    """The build that takes the serving one's place: under way, or to be begun after a change."""
    builds = catalog.generations.live(project.record.id)
    serving = next((build for build in builds if build.state == "SERVING"), None)
    if serving is None:
        return None
    made = [build for build in builds if build.state in _UNDER_WAY]
    if not made:
        if serving.embedder_id == project.embedder_id or project.choice.key == "missing":
            return None
        waiting = sum(state.answers for state in catalog.upload_states.page(project.record.id))
        return Replacement(project.embedder_id, serving.embedder_id, False, 0, waiting)
    newest = made[-1]
    found = catalog.build_progress.of(project.record.id, {newest.number: None})[newest.number]
    return Replacement(
        newest.embedder_id, serving.embedder_id, True, found.documents, found.of_documents
    )


def _rate(builds: list[Generation], embedder_id: str) -> float | None:
    rates = [build.pace.texts_per_second for build in builds if build.embedder_id == embedder_id]
    known = [rate for rate in rates if rate]
    return known[-1] if known else None
