"""The home and addresses of an installation, for a process that serves several installations."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Final

from rag_assets.common.elasticsearch_settings import ACCOUNT_VARIABLES, CERTIFICATE_VARIABLES
from rag_assets.common.settings import Settings

_DROPPED_WITH_OWN_HOME: Final = ("RAG_ASSETS_LAKE_URL", "RAG_ASSETS_BLOBS_URL")
"""Variables that an installation with its own home folder does not inherit: the folder contains its
stores."""
_DROPPED_WITH_OWN_DATABASE: Final = (
    "RAG_ASSETS_OWNER_DATABASE_URL",
    "RAG_ASSETS_SERVICE_DATABASE_URL",
    "RAG_ASSETS_DAGSTER_DATABASE_URL",
)
"""Variables that an installation with its own database does not inherit: they name the
environment's database under other roles."""
_ADDRESSES_OF_ELASTICSEARCH: Final = (
    "RAG_ASSETS_ELASTICSEARCH_URL",
    "ELASTICSEARCH_URL",
    "RAG_ASSETS_ELASTICSEARCH_CLOUD_ID",
)
_DROPPED_WITH_OWN_ELASTICSEARCH: Final = (
    *_ADDRESSES_OF_ELASTICSEARCH,
    *ACCOUNT_VARIABLES,
    *CERTIFICATE_VARIABLES,
)
"""Variables that an installation does not inherit if its Elasticsearch is not the environment's:
the account must not be sent to another server."""


@dataclass(frozen=True, slots=True)
class Installation:
    """The home folder and addresses of an installation; None uses the environment's value.

    All other settings come from the environment.

    Attributes:
        home: the folder with `tenants.yaml` and `.local`.
        database_url: address of the catalog's database.
        elasticsearch_url: the nodes of Elasticsearch, separated by commas. If the environment names
            another server, that server's account and certificate are not used: add yours to the
            URL, or use the next two attributes.
        elasticsearch_api_key_file: file with the API key.
        elasticsearch_ca_file: PEM file that verifies the certificate of Elasticsearch.
        lake_url, blobs_url: folders or addresses in object stores; by default in `home`, if it is
            given.
        index_prefix: distinguishes installations that share an Elasticsearch.
    """

    home: str | Path | None = None
    database_url: str | None = None
    elasticsearch_url: str | None = None
    elasticsearch_api_key_file: str | Path | None = None
    elasticsearch_ca_file: str | Path | None = None
    lake_url: str | None = None
    blobs_url: str | None = None
    index_prefix: str | None = None

    def given(self) -> dict[str, str]:
        """Return the attributes that are not None, by name."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        # A value that Dagster reads from a variable later is already text, and is not changed here.
        return {
            name: str(value) if isinstance(value, Path) else value
            for name, value in values.items()
            if value is not None
        }

    def settings(self, environ: Mapping[str, str] | None = None) -> Settings:
        """Return the settings of the installation."""
        own = {f"RAG_ASSETS_{name.upper()}": value for name, value in self.given().items()}
        inherited = os.environ if environ is None else environ
        replaced = {
            *(_DROPPED_WITH_OWN_HOME if self.home is not None else ()),
            *(_DROPPED_WITH_OWN_DATABASE if self.database_url is not None else ()),
            *(_DROPPED_WITH_OWN_ELASTICSEARCH if self._has_other_elasticsearch(inherited) else ()),
            *(ACCOUNT_VARIABLES if self.elasticsearch_api_key_file is not None else ()),
            *(CERTIFICATE_VARIABLES if self.elasticsearch_ca_file is not None else ()),
        }
        inherited_variables = {
            name: value for name, value in inherited.items() if name not in replaced
        }
        return Settings.from_environment({**inherited_variables, **own})

    def _has_other_elasticsearch(self, environ: Mapping[str, str]) -> bool:
        """Return whether the environment names a different Elasticsearch than this installation."""
        named = {value for name in _ADDRESSES_OF_ELASTICSEARCH if (value := environ.get(name))}
        return self.elasticsearch_url is not None and bool(named - {self.elasticsearch_url})
