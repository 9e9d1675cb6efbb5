"""Asset checks: independent evidence that a tenant's data is what the chain promises.

Belongs here: per check one module with the judgement as pure functions over rows, and a thin
Dagster wrapper. Does not: gates, which work per document in the core before anything is written
(stages), and mending what a check found (stages.drift).

The modules with checks do without `from __future__ import annotations`: Dagster compares the
annotation of a check's context as it stands, and knows it not by its name.
"""

from __future__ import annotations

import dagster as dg

from checks.canary import canary_check
from checks.dimensions import index_dimensions, vector_dimensions
from checks.drift import drift_check
from checks.expectations import chunk_expectations, embedding_expectations
from checks.isolation import isolation_check
from checks.quarantine import quarantine_check
from checks.secrets import secrets_check
from checks.spending import spending_check
from checks.staleness import staleness_check

ALL_CHECKS: tuple[dg.AssetChecksDefinition, ...] = (
    secrets_check,
    chunk_expectations,
    vector_dimensions,
    embedding_expectations,
    canary_check,
    spending_check,
    index_dimensions,
    quarantine_check,
    staleness_check,
    drift_check,
    isolation_check,
)
