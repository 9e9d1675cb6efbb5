"""The session of a command: settings, servers, stores and Dagster instance."""

from __future__ import annotations

import getpass
import inspect
import os
import re
import shutil
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from dataclasses import replace
from functools import cached_property, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Concatenate, ParamSpec, Self, TypeVar

from rag_assets.common.settings import Settings
from rag_assets.runtime.program_processes import build_dagster_environment
from rag_assets.runtime.stack import Endpoints, LocalStack

if TYPE_CHECKING:
    import dagster as dg

    from rag_assets.billing.embedders import Embedders
    from rag_assets.cli.runs import Runner
    from rag_assets.declarations import Naming
    from rag_assets.pipeline.context import TenantContext
    from rag_assets.pipeline.mark_keeper import CatalogMarkKeeper
    from rag_assets.resources.own_runs import OwnRuns
    from rag_assets.storage.catalog.catalog import Catalog
    from rag_assets.storage.catalog.database import TenantRef
    from rag_assets.storage.catalog.tenants.table import TenantRecord
    from rag_assets.storage.index.store import VectorStore
    from rag_assets.storage.installation.identity import Identity
    from rag_assets.storage.lake.store import Lake


_LOCK_WAIT_SECONDS = 60.0

TEMPLATES = Path(__file__).resolve().parent / "home"

"""Folder with the files of a new Dagster instance."""

_P = ParamSpec("_P")

_T = TypeVar("_T")


class Session:
    """The access of one command to the installation; each store and server is opened on first use.

    Args:
        reconciles: whether opening the catalog updates its tenants from tenants.yaml; False for
            commands that only read.
        is_service: whether to use Postgres with the service's role, which has fewer rights.
    """

    def __init__(self, *, reconciles: bool = True, is_service: bool = False) -> None:
        self.settings = Settings.from_environment()
        self._reconciles = reconciles
        self._is_service = is_service
        self.stack = LocalStack(self.settings)
        self._exit_stack = ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()

    def close(self) -> None:
        """Close all opened connections."""
        self._exit_stack.close()

    def prepare_home(self) -> None:
        """Copy dagster.yaml and workspace.yaml into the folder of our Dagster instance."""
        folder = self.settings.own_dagster_home
        folder.mkdir(parents=True, exist_ok=True)
        for template in sorted(TEMPLATES.glob("*.yaml")):
            if not (folder / template.name).exists():
                shutil.copyfile(template, folder / template.name)

    @cached_property
    def endpoints(self) -> Endpoints:
        """Return the addresses of the servers, with this session's role in Postgres."""
        endpoints = self.stack.endpoints()
        if self._is_service:
            return replace(endpoints, database_url=endpoints.service_url)
        return endpoints

    @cached_property
    def catalog(self) -> Catalog:
        """Return the catalog, after checking that the home folder and the stores belong to it."""
        catalog = self._installation[0]
        if self._reconciles:
            self.reconcile()
        return catalog

    @cached_property
    def unverified_catalog(self) -> Catalog:
        """Return the catalog without checking that the home folder and the stores belong to it."""
        from rag_assets.storage.catalog.catalog import Catalog

        self.stack.keep_private()
        endpoints = self.endpoints
        catalog = Catalog.open(
            endpoints.database_url, endpoints.owner_url, before_upgrade=self._announce_upgrade
        )
        self._exit_stack.callback(catalog.close)
        return catalog

    @property
    def identity(self) -> Identity:
        """Return the identity of the installation."""
        return self._installation[1]

    @cached_property
    def _installation(self) -> tuple[Catalog, Identity]:
        from rag_assets.storage.installation.identity import open_catalog

        self.stack.keep_private()
        endpoints = self.endpoints
        catalog, identity = open_catalog(
            self.settings,
            endpoints.database_url,
            endpoints.owner_url,
            before_upgrade=self._announce_upgrade,
        )
        self._exit_stack.callback(catalog.close)
        catalog.database.after_raise = self._keep_marks
        return catalog, identity

    def _announce_upgrade(self, others: Sequence[str]) -> None:
        """Warn about programs that will stop working because the catalog's schema is upgraded.

        Raises:
            OlderProgramRuns: one of them is a process of this home folder; the upgrade is refused.
        """
        from rag_assets.cli.output import warn

        self.stack.require_no_older_process(others)
        for other in others:
            warn(
                f"{other}: the catalog is being upgraded, and this program stops working until "
                "it is updated"
            )

    @cached_property
    def keeper(self) -> CatalogMarkKeeper:
        """Return the keeper, which compares the catalog with the marks in the stores."""
        from rag_assets.pipeline.mark_keeper import CatalogMarkKeeper
        from rag_assets.storage.blobs.store import open_blobs

        blobs = open_blobs(self.settings)
        return CatalogMarkKeeper(self._installation[0], self.lake, blobs, lambda: self.store)

    def require_trusted_grants(self, principals: Sequence[str]) -> None:
        """Require that the grants of principals can be trusted."""
        if principals and (pending := self.keeper.find_pending_restore()) is not None:
            raise pending

    def _keep_marks(self, raised: Collection[TenantRef | None]) -> None:
        # The journal is opened at the first change, because most commands change nothing.
        self.keeper.keep(raised)

    def reconcile(self) -> None:
        """Update the catalog's tenants from tenants.yaml, and warn about problems found there."""
        from rag_assets.cli.output import warn
        from rag_assets.pipeline.tenancy import reconcile_tenants

        catalog, identity = self._installation
        for problem in reconcile_tenants(catalog, self.settings, identity).problems:
            warn(problem.advice)

    def warn_of_clock(self) -> None:
        """Warn if deletion by age is suspended because the clock may be wrong."""
        from rag_assets.cli.output import warn
        from rag_assets.common.clock import Clock
        from rag_assets.common.errors import ServiceUnavailable
        from rag_assets.pipeline.clock_guard import ClockDoubt, get_deletion_time

        with suppress(ServiceUnavailable):
            trusted = get_deletion_time(self.catalog, Clock())
            if isinstance(trusted, ClockDoubt):
                warn(trusted.message_with_hint)

    @cached_property
    def store(self) -> VectorStore:
        """Return the vector store."""
        from rag_assets.storage.index.store import StoreConfig, open_store
        from rag_assets.storage.installation.identity import require_cluster

        identity = self.identity
        config = StoreConfig(
            self.endpoints.elasticsearch,
            prefix=identity.prefixes[0],
            vectors_url=self.settings.vectors_url or self.endpoints.database_url,
            installation=identity.id,
            former_prefixes=identity.prefixes[1:],
            layout=self.settings.elasticsearch.layout,
        )
        store = open_store(config)
        self._exit_stack.callback(store.close)
        require_cluster(self.catalog, store, identity)
        return store

    @cached_property
    def lake(self) -> Lake:
        """Return the lake of all tenants."""
        from rag_assets.storage.lake.store import Lake

        return Lake(self.settings.lake_url)

    @cached_property
    def embedders(self) -> Embedders:
        """Return the tenants' embedders."""
        from rag_assets.billing.embedders import Embedders

        return Embedders(self.catalog, self.settings)

    def get_active_tenant(self, tenant_id: str) -> TenantRecord:
        """Return the record of a tenant; raise ConfigurationError if the tenant is not enabled."""
        from rag_assets.common.errors import ConfigurationError

        record = self.catalog.tenants.get(tenant_id)
        if record.is_switched_off:
            raise ConfigurationError(
                f"tenant {tenant_id!r} was switched off by its application",
                hint=f"switch it on in the panel; `rag-assets panel {tenant_id}` prints a link",
            )
        if record.state != "ACTIVE":
            raise ConfigurationError(
                f"tenant {tenant_id!r} is {record.state.lower()}",
                hint=(
                    f"run `rag-assets tenants enable {tenant_id}`, or add it to tenants.yaml again"
                ),
            )
        return record

    def build_reader_context(self, tenant_id: str) -> TenantContext:
        """Return a context for reading a tenant's data; writing would need the tenant's lock."""
        from rag_assets.cli.output import progress
        from rag_assets.pipeline.context import TenantContext

        return TenantContext.open(
            self.get_active_tenant(tenant_id),
            self.embedders,
            self.catalog,
            self.lake,
            self.store,
            log=progress,
        )

    @contextmanager
    def writer(self, tenant_id: str, task: str) -> Iterator[TenantContext]:
        """Take the tenant's lock, waiting up to a minute, and yield a context for writing its data.

        Args:
            task: description of the work, shown to others who wait for the lock.
        """
        from rag_assets.cli.output import progress
        from rag_assets.storage.catalog.lock import Holder

        with self.catalog.lock.hold(
            tenant_id,
            Holder.here(task),
            wait_seconds=_LOCK_WAIT_SECONDS,
            on_wait=lambda holder: progress(f"waiting for {holder}"),
        ) as held_lock:
            ctx = self.build_reader_context(tenant_id)
            lake = self.lake.tenant(ctx.ref.id, ctx.ref.incarnation, guard=held_lock.check)
            yield replace(ctx, lake=lake, guard=held_lock.check)

    @cached_property
    def runner(self) -> Runner:
        """Return the runner of jobs in this process."""
        from rag_assets.cli.runs import Runner

        return Runner(self)

    @cached_property
    def own_runs(self) -> OwnRuns:
        """Return the object that finds this installation's runs in Dagster's instance."""
        from rag_assets.definitions import build_resources

        own_runs: OwnRuns = build_resources()["rag_assets_runs"]
        return own_runs

    @cached_property
    def names(self) -> Naming:
        """Return the naming of the team's Dagster project that loads this installation.

        The project is recognized by its runs. Without exactly one such project, return the naming
        of our own code location.
        """
        from rag_assets.declarations import PLAIN

        team_namings = self.own_runs.list_namings(self.instance) - {PLAIN}
        return team_namings.pop() if len(team_namings) == 1 else PLAIN

    @cached_property
    def instance(self) -> dg.DagsterInstance:
        """Return Dagster's instance: the team's own, or an instance on the catalog's Postgres."""
        from rag_assets.cli.output import warn

        team_home = self.settings.dagster_home
        if team_home is None:
            self.prepare_home()
            self.stack.prepare_run_storage(warn)
        else:
            _require_dagster_home(team_home)
        os.environ.update(build_dagster_environment(self.settings, self.endpoints.dagster_url))
        from rag_assets.dagster_compat import open_instance, pool_connections

        with nullcontext() if team_home is None else _convert_instance_errors(team_home):
            instance = open_instance(team_home or self.settings.own_dagster_home)
        # Entering the instance as a context would make it the process's current instance, even
        # after it is closed.
        self._exit_stack.callback(instance.dispose)
        return self._exit_stack.enter_context(pool_connections(instance))


def _require_dagster_home(folder: Path) -> None:
    """Raise ConfigurationError if DAGSTER_HOME is not an absolute path of a folder."""
    from rag_assets.common.errors import ConfigurationError

    if not folder.is_absolute():
        raise ConfigurationError(
            f"DAGSTER_HOME is a relative path: {folder}",
            hint="set an absolute path, or a path that begins with ~",
        )
    if not folder.is_dir():
        raise ConfigurationError(
            f"DAGSTER_HOME is not a folder: {folder}",
            hint="set it to the folder of your Dagster instance, or unset it to use the"
            " installation's own",
        )


@contextmanager
def _convert_instance_errors(folder: Path) -> Iterator[None]:
    """Convert Dagster's errors about dagster.yaml in DAGSTER_HOME to a ConfigurationError."""
    import dagster as dg
    from yaml import YAMLError

    from rag_assets.common.errors import ConfigurationError
    from rag_assets.dagster_compat import CheckError

    try:
        yield
    except (dg.DagsterError, CheckError, YAMLError) as error:
        # Dagster's message may contain passwords from dagster.yaml.
        missing = sorted({*re.findall(r'environment variable "(\w+)"', str(error))})
        reason = f"{', '.join(missing)} is not set" if missing else type(error).__name__
        raise ConfigurationError(
            f"DAGSTER_HOME: Dagster cannot open the instance of {folder}: {reason}",
            hint="correct its dagster.yaml, or set the environment variables that it names in this"
            " shell or crontab",
        ) from None


def with_session(command: Callable[Concatenate[Session, _P], _T]) -> Callable[_P, _T]:
    """Return a function that runs the command with a new session, and then closes the session."""
    return _in_session(command, is_reconciling=True)


def with_reading_session(command: Callable[Concatenate[Session, _P], _T]) -> Callable[_P, _T]:
    """Like with_session, for a command that only reads: the catalog's tenants stay unchanged."""
    return _in_session(command, is_reconciling=False)


def with_serving_session(command: Callable[Concatenate[Session, _P], _T]) -> Callable[_P, _T]:
    """Like with_reading_session, but with the service's role in Postgres (fewer rights)."""
    return _in_session(command, is_reconciling=False, is_service=True)


def _in_session(
    command: Callable[Concatenate[Session, _P], _T],
    *,
    is_reconciling: bool,
    is_service: bool = False,
) -> Callable[_P, _T]:
    @wraps(command)
    def run(*arguments: _P.args, **options: _P.kwargs) -> _T:
        with Session(reconciles=is_reconciling, is_service=is_service) as session:
            return command(session, *arguments, **options)

    # Typer reads the options from the signature, which must not contain the session. Other
    # functions may have annotations that exist only for type checkers.
    with suppress(NameError):
        signature = inspect.signature(command, eval_str=True)
        options = [*signature.parameters.values()][1:]
        run.__signature__ = signature.replace(parameters=options)  # type: ignore[attr-defined]
        run.__annotations__ = {option.name: option.annotation for option in options}
    return run


def operator() -> str:
    """Return "operator" and the name of the operating-system user who runs the command."""
    try:
        return f"operator {getpass.getuser()}"
    except (OSError, KeyError):
        return f"operator {os.getuid()}"
