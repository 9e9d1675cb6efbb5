"""The Dagster resource of an installation; all other resources get their settings from it."""

from __future__ import annotations

from dataclasses import fields

import dagster as dg

from rag_assets.common.installation import Installation
from rag_assets.common.settings import Settings


class InstallationResource(dg.ConfigurableResource):  # type: ignore[type-arg]
    """An installation as a resource; see Installation, which has the same attributes.

    It is used only inside our other resources, so that Dagster's UI does not display the
    installation's database address.
    """

    home: str | None = None
    database_url: str | None = None
    elasticsearch_url: str | None = None
    elasticsearch_api_key_file: str | None = None
    elasticsearch_ca_file: str | None = None
    lake_url: str | None = None
    blobs_url: str | None = None
    index_prefix: str | None = None

    @classmethod
    def from_installation(cls, installation: Installation | None) -> InstallationResource:
        """Return the resource for an installation; by default, the environment's installation."""
        return cls(**(installation or Installation()).given())

    @property
    def settings(self) -> Settings:
        """Return the installation's settings; omitted values come from the environment.

        Raises:
            ConfigurationError: a value is malformed, or the home folder does not exist.
        """
        values = {field.name: _resolve(getattr(self, field.name)) for field in fields(Installation)}
        return Installation(**values).settings()


def _resolve(value: str | None) -> str | None:
    """Return the text of a setting, reading the environment variable that it may refer to.

    Within a run, Dagster has already resolved such references.
    """
    return value.get_value() if isinstance(value, dg.EnvVar) else value
