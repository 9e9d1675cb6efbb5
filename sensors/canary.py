"""Calls every embedder once a day."""

from rag_assets.declarations import Schedule
from rag_assets.jobs.canary import probe_embedders

daily_canary = Schedule(
    "daily_canary",
    probe_embedders,
    "30 4 * * *",
    (
        "Embeds a few fixed texts with every tenant's embedder, in one run over all tenants, and "
        "detects whether a provider changed a model."
    ),
)
