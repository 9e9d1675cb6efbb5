"""Failures of stores and sources, and of work that several processes do at once."""

from __future__ import annotations

from collections.abc import Sequence

from rag_assets.common.errors.base import RagAssetsError


class BuildNotWritable(RagAssetsError):
    """A build's entries cannot be made any more: its recipe or its model is not available."""


class ServiceUnavailable(RagAssetsError):
    """A server that the project needs does not answer."""


class IndexUnavailable(ServiceUnavailable):
    """Elasticsearch refuses until an operator acts: its disk is full, or an index is closed."""


class DiskFull(ServiceUnavailable):
    """A disk of the installation has no space, or nearly none."""


class LakeDamaged(ServiceUnavailable):
    """Files of the lake were lost or damaged, and cannot be read.

    Args:
        place: of the table.
        files: names of the files, with their faults.
        participle: completes "the lake … cannot be".
    """

    def __init__(self, place: str, files: Sequence[str], participle: str) -> None:
        more = f" and {len(files) - 1:,} more" if len(files) > 1 else ""
        super().__init__(
            f"the lake at {place} cannot be {participle}: damaged file {files[0]}{more}",
            hint=(
                "rag-assets sync TENANT --repair takes its rows from the index, and parses again"
                " the documents that are lacking; rag-assets check TENANT --deep lists all damage"
            ),
        )
        self.files = tuple(files)


class VectorsUnavailable(ServiceUnavailable):
    """The back end that a build's vectors are searched in does not answer."""


class TenantBusy(ServiceUnavailable):
    """A request waited too long for other writers of the same tenant."""


class ListingFailed(RagAssetsError):
    """A source could not be listed completely; what it holds is unknown."""


class SchemaTooNew(RagAssetsError):
    """The catalog's schema was upgraded by a newer program than this one."""


class OlderProgramRuns(RagAssetsError):
    """An upgrade of the catalog's schema would stop a running process of an older program."""


class SessionsNotKept(RagAssetsError):
    """Postgres is behind a pooler that changes its session from one transaction to the next."""


class TenantLocked(RagAssetsError):
    """Another process writes for this tenant."""


class OnHold(RagAssetsError):
    """A person has decided that it leaves no store until a hold is lifted."""


class CatalogSetBack(RagAssetsError):
    """The catalog is an earlier one than the stores were written with; nothing is deleted by it."""


class RestorePending(CatalogSetBack):
    """The restored catalog lacks security changes, and no operator has accepted it yet."""


class ErasureIncomplete(RagAssetsError):
    """Something that was to be erased is left in a store; the erasure stays open."""


class ClockDoubted(RagAssetsError):
    """The clock may be wrong, so nothing is deleted for its age."""


class TenantGone(RagAssetsError):
    """The tenant was removed, disabled or re-created while this writer was working."""


class BuildNotAskable(RagAssetsError):
    """A build cannot be searched until a person acts: its model, its key or its index is gone.

    Args:
        generation: its number.
        cause: the error of the search.
    """

    def __init__(self, generation: int, cause: RagAssetsError) -> None:
        super().__init__(f"build {generation} cannot be searched: {cause.message}", hint=cause.hint)
        self.generation = generation


class IndexInconsistent(RagAssetsError):
    """The serving index was lost, replaced or modified outside of rag-assets."""
