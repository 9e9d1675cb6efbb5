"""The protocol by which assets use the checks that judge builds, without depending on them."""

from typing import Protocol

import dagster as dg

from rag_assets.pipeline.judging import Judge
from rag_assets.resources.workbench import Workbench


class PublishJudge(Protocol):
    """Makes the function that judges a build in one run."""

    def __call__(self, workbench: Workbench, run_id: str, log: dg.DagsterLogManager) -> Judge:
        """Return the function; see Judge.

        Args:
            workbench: of the run.
            run_id: the run that holds the tenant's lock.
            log: of the run.
        """
        ...
