"""Sources of the type `sql`: records of a workspace, pulled from its application's database.

This module has their configuration; the others read the database, convert rows to records, and
store a watermark for each query. Pulled records are stored like pushed records. The jobs and
sensors that start a pull are in definitions.py.
"""

from __future__ import annotations

from typing import Annotated, Literal
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import AfterValidator, Field, StringConstraints

from rag_assets.common.environment import require_variable_reference
from rag_assets.common.errors import ConfigurationError
from rag_assets.common.hashing import compute_key
from rag_assets.ingest.sources.kinds import SourceConfig, SourceContext, SourceKind
from rag_assets.ingest.sources.records import RecordsConfig, RecordsSource

RecordType = Literal["page", "block", "comment", "file", "template", "db_row"]
"""Types of records; each type comes before the types that change one of its records."""
TYPES: tuple[RecordType, ...] = ("page", "block", "comment", "file", "template", "db_row")


def _require_known_zone(name: str) -> str:
    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise ValueError("unknown time zone; use an IANA name such as Europe/Berlin") from None
    return name


def _strip_semicolon(query: str) -> str:
    return query.rstrip().rstrip(";").rstrip()


def _require_variable_reference(url: str) -> str:
    try:
        require_variable_reference("url", url)
    except ConfigurationError as error:
        raise ValueError(f"{error.message}: {error.hint}") from None
    return url


Query = Annotated[
    str, StringConstraints(strip_whitespace=True, min_length=1), AfterValidator(_strip_semicolon)
]


class SqlConfig(SourceConfig):
    """Records of a workspace, pulled from a database by one query per type.

    Attributes:
        name: name of the source; part of every document's identity.
        scope: the access scope of templates, if it differs from the tenant's.
        url: $NAME of the environment variable with the database's URL, in SQLAlchemy's format.
        queries: a SELECT for each pulled type of record, with the columns `id`, `updated_at`, and
            the fields of the type's body.
        tree: a SELECT of all pages and databases of the tree, with the columns `id` and the fields
            of a page; each pull reads all of its rows.
        timezone: time zone of times without a zone.
        overlap_seconds: how far before the last known change a pull starts; a change may be
            committed this long after its `updated_at`.
        every_seconds: interval between pulls; longer if they take long.
        timeout_seconds: time limit of an SQL statement.
    """

    type: Literal["sql"] = "sql"
    url: Annotated[str, AfterValidator(_require_variable_reference)]
    queries: Annotated[dict[RecordType, Query], Field(min_length=1)]
    tree: Query | None = None
    timezone: Annotated[str, AfterValidator(_require_known_zone)] = "UTC"
    overlap_seconds: int = Field(default=300, ge=0, le=86_400)
    every_seconds: int = Field(default=60, ge=5, le=86_400)
    timeout_seconds: int = Field(default=120, ge=1, le=3_600)

    def compute_query_key(self, source_type: RecordType) -> str:
        """Return a hash of a query and the settings that affect its rows.

        If the hash changes, the next pull reads all rows again.
        """
        return compute_key("query", self.url, self.timezone, source_type, self.queries[source_type])


def _build_source(config: SqlConfig, context: SourceContext) -> RecordsSource:
    if context.records is None:
        raise ConfigurationError(
            f"source {config.name!r}: reading records needs an open catalog",
            hint="open the source with the tenant's catalog",
        )
    if not context.typed:
        raise ConfigurationError(
            f"source {config.name!r}: only workspaces can pull records",
            hint="set `profile: workspace`, or push the records from the application",
        )
    plain = RecordsConfig(name=config.name, scope=config.scope)
    return RecordsSource(plain, context.records, context.uploads)


SQL = SourceKind("sql", SqlConfig, _build_source, pulled=True, source_types=TYPES)
