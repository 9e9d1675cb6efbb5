"""The protocol by which assets use the checks that judge builds, without depending on them."""

from typing import Protocol

import dagster as dg

from rag_assets.pipeline.generations import Judge
from rag_assets.resources.workbench import Workbench


class PublishJudge(Protocol):
    """Creates the function that judges builds in one run."""

    def __call__(self, workbench: Workbench, run_id: str, log: dg.DagsterLogManager) -> Judge:
        """Return the function; see Judge.

        Args:
            workbench: workbench of the run.
            run_id: id of the run that holds the tenant's lock.
            log: log of the run.
        """
        ...
