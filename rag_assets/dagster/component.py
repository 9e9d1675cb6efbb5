"""`KnowledgeBaseComponent`, which describes an installation in a team's project in YAML."""

from __future__ import annotations

import dagster as dg

from rag_assets.common.installation import Installation
from rag_assets.dagster.project import build_defs
from rag_assets.declarations import STAGES
from rag_assets.definitions import Automation


class InstallationModel(dg.Model, dg.Resolvable):
    """The addresses of an installation; omitted values come from the environment."""

    home: str | None = None
    database_url: str | None = None
    elasticsearch_url: str | None = None
    elasticsearch_api_key_file: str | None = None
    elasticsearch_ca_file: str | None = None
    lake_url: str | None = None
    blobs_url: str | None = None
    index_prefix: str | None = None


class KnowledgeBaseComponent(dg.Component, dg.Model, dg.Resolvable):
    """An installation, which keeps a search index equal to the sources of its tenants.

    The attributes are the arguments of `rag_assets.dagster.build_defs`, except `resources`, which
    YAML cannot express.
    """

    name: str = "rag_assets"
    key_prefix: str | list[str] | None = None
    group: str = STAGES
    upstream: list[str] | dict[str, list[str]] = []  # noqa: RUF012  (Pydantic copies it)
    automation: Automation = "all"
    installation: InstallationModel | None = None
    systems: list[str] | None = None

    def build_defs(self, context: dg.ComponentLoadContext) -> dg.Definitions:
        """Build the definitions of the component."""
        chosen = self.installation
        return build_defs(
            name=self.name,
            key_prefix=self.key_prefix,
            group=self.group,
            upstream=self.upstream,
            automation=self.automation,
            installation=None if chosen is None else Installation(**chosen.model_dump()),
            systems=self.systems,
        )
