"""The catalog: one object that gives access to all of its tables."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing
from typing import Any, TypeVar

from rag_assets.common.errors import ConfigurationError
from rag_assets.storage.catalog.accounts.access import AccessTable
from rag_assets.storage.catalog.accounts.credentials import ProviderKeyTable, ServiceTokenTable
from rag_assets.storage.catalog.accounts.panel_sessions import PanelSessionTable
from rag_assets.storage.catalog.accounts.usage import UsageTable
from rag_assets.storage.catalog.builds.batches import BatchTable
from rag_assets.storage.catalog.builds.generations import GenerationTable, PaceTable, PinTable
from rag_assets.storage.catalog.builds.judgements import JudgementTable, QuestionVectorTable
from rag_assets.storage.catalog.builds.lake_keys import LakeKeyTable
from rag_assets.storage.catalog.builds.measurements import ProbeTable, ThresholdTable
from rag_assets.storage.catalog.builds.progress import BuildProgressQuery, WorkQuery
from rag_assets.storage.catalog.builds.syncs import DepartureTable, SyncTable
from rag_assets.storage.catalog.database import ChangeChannel, Database
from rag_assets.storage.catalog.documents.freshness import FreshnessQuery, RecordFreshnessQuery
from rag_assets.storage.catalog.documents.readable import ReadableDocuments
from rag_assets.storage.catalog.documents.removals import MovedDocuments, RemovalTable
from rag_assets.storage.catalog.documents.status import ReindexRequestTable
from rag_assets.storage.catalog.documents.table import (
    DocumentTable,
    FormerVersionTable,
    QuarantineTable,
)
from rag_assets.storage.catalog.documents.versions import IndexTable
from rag_assets.storage.catalog.erasure.erasures import ErasureTable
from rag_assets.storage.catalog.erasure.holds import HoldTable
from rag_assets.storage.catalog.erasure.receipts import ReceiptTable
from rag_assets.storage.catalog.erasure.rescans import RescanTable
from rag_assets.storage.catalog.erasure.retention import RetentionQuery
from rag_assets.storage.catalog.erasure.traces import (
    DagsterHistoryTable,
    TextColumnStore,
    TraceQuery,
)
from rag_assets.storage.catalog.installation.clock import ClockTable
from rag_assets.storage.catalog.installation.identity import InstallationTable, present_database
from rag_assets.storage.catalog.journal.check_results import CheckResultTable
from rag_assets.storage.catalog.journal.events import EventTable
from rag_assets.storage.catalog.journal.security_changes import MarkTable, SecurityChangeTable
from rag_assets.storage.catalog.lock import TenantLock, require_sessions
from rag_assets.storage.catalog.migrate import (
    is_behind,
    is_new,
    list_other_programs,
    migrate,
    watch_schema,
)
from rag_assets.storage.catalog.records.contents import FileContents
from rag_assets.storage.catalog.records.manifests import ManifestTable
from rag_assets.storage.catalog.records.pages import PageTable
from rag_assets.storage.catalog.records.states import RecordDriftQuery, RecordStateQuery
from rag_assets.storage.catalog.records.table import RecordTable
from rag_assets.storage.catalog.tenants.overview import Overview
from rag_assets.storage.catalog.tenants.settings import ApplicationSettingsTable, OrganizationTable
from rag_assets.storage.catalog.tenants.table import ProjectTable, TenantTable
from rag_assets.storage.catalog.uploads.table import BlobNeeds, UploadStates, UploadTable

TablesT = TypeVar("TablesT")


class Catalog:
    """Access to the catalog, with one attribute for each table or group of tables."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.installation, self.tenants = InstallationTable(database), TenantTable(database)
        self.application_settings = ApplicationSettingsTable(database)
        self.access, self.security = AccessTable(database), SecurityChangeTable(database)
        self.pages = PageTable(database)
        self.documents = DocumentTable(database)
        self.moves = MovedDocuments(database)
        self.quarantine = QuarantineTable(database)
        self.records, self.record_states = RecordTable(database), RecordStateQuery(database)
        self.record_manifests = ManifestTable(database)
        self.uploads, self.upload_states = UploadTable(database), UploadStates(database)
        self.file_contents, self.blob_needs = FileContents(database), BlobNeeds(database)
        self.record_drift = RecordDriftQuery(database)
        self.removals, self.departures = RemovalTable(database), DepartureTable(database)
        self.retention = RetentionQuery(database)
        self.holds = HoldTable(database)
        self.erasures, self.receipts = ErasureTable(database), ReceiptTable(database)
        self.traces, self.dagster_histories = TraceQuery(database), DagsterHistoryTable(database)
        self.rescans, self.text_columns = RescanTable(database), TextColumnStore(database)
        self.reindex_requests = ReindexRequestTable(database)
        self.index = IndexTable(database)
        self.former_versions = FormerVersionTable(database)
        self.lake_keys = LakeKeyTable(database)
        self.readable = ReadableDocuments(database)
        self.generations = GenerationTable(database)
        self.pace = PaceTable(database)
        self.pins, self.thresholds = PinTable(database), ThresholdTable(database)
        self.build_progress = BuildProgressQuery(database)
        self.syncs = SyncTable(database)
        self.marks, self.clock = MarkTable(database), ClockTable(database)
        self.batches = BatchTable(database)
        self.probes = ProbeTable(database)
        self.judgements = JudgementTable(database)
        self.question_vectors = QuestionVectorTable(database)
        self.check_results = CheckResultTable(database)
        self.events = EventTable(database)
        self.organizations, self.projects = OrganizationTable(database), ProjectTable(database)
        self.provider_keys = ProviderKeyTable(database)
        self.service_tokens = ServiceTokenTable(database)
        self.panel_sessions = PanelSessionTable(database)
        self.usage = UsageTable(database)
        self.freshness = FreshnessQuery(database)
        self.record_freshness = RecordFreshnessQuery(database)
        self.overview, self.work = Overview(database), WorkQuery(database)
        self.changes = ChangeChannel(database)
        self.lock = TenantLock(database)
        self._of_systems: dict[object, Any] = {}

    def of_system(self, make: Callable[[Database], TablesT]) -> TablesT:
        """Return the object through which a system accesses its tables, created once per catalog.

        Args:
            make: creates the object from the database; for example, its class.
        """
        if make not in self._of_systems:
            # If two threads make an object, both get the one that was stored first.
            self._of_systems.setdefault(make, make(self.database))
        tables: TablesT = self._of_systems[make]
        return tables

    @classmethod
    def open(
        cls,
        url: str,
        owner_url: str | None = None,
        *,
        before_upgrade: Callable[[Sequence[str]], None] | None = None,
    ) -> Catalog:
        """Connect to the catalog's database, upgrade its schema, and return the catalog.

        Args:
            before_upgrade: called before an existing schema is upgraded, with the connections of
                other programs (see list_other_programs); it raises an error to prevent the upgrade.

        Raises:
            SessionsNotKept: a pooler in front of Postgres does not keep sessions.
            SchemaTooNew: a newer program upgraded the schema.
            ConfigurationError: the owner's address names another database.
        """
        database = Database(url)
        try:
            require_sessions(database)
            if is_behind(database):
                with closing(Database(owner_url or url)) as owners:
                    _require_same_database(database, owners)
                    if before_upgrade is not None and not is_new(database):
                        before_upgrade(list_other_programs(database))
                    migrate(owners)
            watch_schema(database)
        except BaseException:
            database.close()
            raise
        return cls(database)

    def close(self) -> None:
        """Close all connections."""
        self.database.close()


def _require_same_database(database: Database, owners: Database) -> None:
    """Require that both addresses lead to the same database, before the owner upgrades it."""
    with database.begin() as connection, owners.begin() as other:
        if present_database(connection) != present_database(other):
            raise ConfigurationError(
                "RAG_ASSETS_OWNER_DATABASE_URL refers to a different database than"
                " RAG_ASSETS_DATABASE_URL",
                hint="set it to the same database, with the owner's account",
            )
