"""Failures of stores and sources, and conflicts between concurrent processes."""

from __future__ import annotations

from collections.abc import Sequence

from rag_assets.common.errors.base import RagAssetsError


class BuildNotWritable(RagAssetsError):
    """Entries can no longer be written to a build: its recipe or its model is not available."""


class ServiceUnavailable(RagAssetsError):
    """A server that the project needs does not answer."""


class IndexUnavailable(ServiceUnavailable):
    """Elasticsearch refuses requests until an operator acts: a full disk, or a closed index."""


class DiskFull(ServiceUnavailable):
    """A disk of the installation is full, or nearly full."""


class LakeDamaged(ServiceUnavailable):
    """Files of the lake were lost or damaged, and cannot be read.

    Args:
        place: location of the table.
        files: names of the files, with their faults.
        participle: completes "the lake … cannot be".
    """

    def __init__(self, place: str, files: Sequence[str], participle: str) -> None:
        more = f" and {len(files) - 1:,} more" if len(files) > 1 else ""
        super().__init__(
            f"the lake at {place} cannot be {participle}: damaged file {files[0]}{more}",
            hint=(
                "rag-assets sync TENANT --repair restores its rows from the index and parses"
                " the missing documents again; rag-assets check TENANT --deep lists all"
                " damage"
            ),
        )
        self.files = tuple(files)


class VectorsUnavailable(ServiceUnavailable):
    """The back end with a build's vectors does not answer."""


class TenantBusy(ServiceUnavailable):
    """A request waited too long for other writers of the same tenant."""


class ListingFailed(RagAssetsError):
    """A source could not be listed completely; its full content is unknown."""


class SchemaTooNew(RagAssetsError):
    """A newer program has upgraded the catalog's schema."""


class OlderProgramRuns(RagAssetsError):
    """An upgrade of the catalog's schema would stop a running process of an older program."""


class SessionsNotKept(RagAssetsError):
    """Postgres is behind a pooler that does not keep a session across transactions."""


class TenantLocked(RagAssetsError):
    """Another process writes for this tenant."""


class OnHold(RagAssetsError):
    """A person has placed a hold: the item stays in every store until the hold is lifted."""


class CatalogSetBack(RagAssetsError):
    """The catalog was restored from an earlier dump, so deletion stops."""


class RestorePending(CatalogSetBack):
    """The restored catalog lacks security changes, and no operator has accepted it yet."""


class ErasureIncomplete(RagAssetsError):
    """Content that was to be erased still exists in a store; the erasure stays open."""


class ClockDoubted(RagAssetsError):
    """The clock may be wrong, so deletion by age stops."""


class TenantGone(RagAssetsError):
    """The tenant was removed, disabled or re-created while this writer was working."""


class BuildNotAskable(RagAssetsError):
    """A build cannot be searched until a person acts: its model, its key or its index is missing.

    Args:
        generation: the build's number.
        cause: the error of the search.
    """

    def __init__(self, generation: int, cause: RagAssetsError) -> None:
        super().__init__(f"build {generation} cannot be searched: {cause.message}", hint=cause.hint)
        self.generation = generation


class IndexInconsistent(RagAssetsError):
    """The serving index was lost, replaced or modified outside of rag-assets."""
