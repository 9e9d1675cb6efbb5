"""Polls providers' batch APIs; without an open batch, this costs one database query a minute."""

from datetime import UTC, datetime

import dagster as dg

from rag_assets.billing.embedders import Embedders
from rag_assets.common.formatting import format_count
from rag_assets.declarations import sensor
from rag_assets.pipeline.batches import choose_due_batches, poll_batches
from rag_assets.resources.stores import PostgresResource
from rag_assets.resources.workbench import convert_to_failures

_MAX_POLLED_BATCHES = 50
"""Maximum number of batches that a tick polls, with one request each."""


@sensor(
    "embedding_batches",
    (
        "Polls the state of embedding batches at providers. When a batch has ended, its documents "
        "are due again, and the sensor source_files requests the run that fetches the vectors."
    ),
    seconds=60,
)
def embedding_batches_sensor(
    context: dg.SensorEvaluationContext, postgres: PostgresResource
) -> dg.SkipReason:
    """Poll the due batches of all tenants."""
    with convert_to_failures(postgres.installation):
        catalog = postgres.catalog()
        batches = catalog.batches.list_open()
        polled = choose_due_batches(batches, datetime.now(UTC), _MAX_POLLED_BATCHES)
        embedders = Embedders(catalog, postgres.installation.settings)
        for problem in poll_batches(catalog, embedders, polled) if polled else ():
            context.log.error(problem)
    under_way = format_count(len(batches), "batch", "batches")
    return dg.SkipReason(f"{under_way} under way, {len(polled)} of them polled")
