"""Identifies this installation's runs in a Dagster instance that may contain other runs.

A team's own jobs, assets and partitions may have the same names as ours, such as a partition `eu`
of its asset `sales`, or a job `canary`. All code that counts, marks or deletes runs therefore
identifies them by this module.
"""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

import dagster as dg

from rag_assets.dagster_compat import IMPLICIT_ASSET_JOB_NAME, REPOSITORY_LABEL_TAG, storage_id
from rag_assets.declarations import NAMING_TAG, NO_RUN_RETRIES, PLAIN, RUN_TAGS, Naming
from rag_assets.resources.stores import PostgresResource
from rag_assets.storage.installation.markers import read_machine_name

PARTITION_TAG: Final = "dagster/partition"
INSTALLATION_TAG: Final = "rag_assets/installation"
"""Tag with the installation of a run, on runs of sensors and commands and on started runs."""
UNFINISHED: Final = (
    dg.DagsterRunStatus.QUEUED,
    dg.DagsterRunStatus.NOT_STARTED,
    dg.DagsterRunStatus.STARTING,
    dg.DagsterRunStatus.STARTED,
)
_START_LIMIT = timedelta(minutes=15)
"""Time after which the launch of a run that has not started counts as failed."""


class OwnRuns(dg.ConfigurableResource):  # type: ignore[type-arg]
    """Finds the runs of this installation.

    Attributes:
        assets: keys of our assets, as strings.
        name, key_prefix, prefix: see Naming.
    """

    postgres: dg.ResourceDependency[PostgresResource]
    jobs: list[str]
    assets: list[str]
    name: str = PLAIN.name
    key_prefix: list[str] = []  # noqa: RUF012  (Pydantic copies it)
    prefix: str = PLAIN.prefix

    @property
    def names(self) -> Naming:
        """Return the naming of our definitions."""
        return Naming(self.name, tuple(self.key_prefix), prefix=self.prefix)

    @property
    def asset_keys(self) -> set[dg.AssetKey]:
        """Return the keys of our assets."""
        return {dg.AssetKey.from_user_string(key) for key in self.assets}

    def list_namings(self, instance: dg.DagsterInstance) -> set[Naming]:
        """Return the namings of this installation's runs in an instance.

        Commands use plain names, but also count and delete the runs of a team's project, which uses
        other names.
        """
        if self._is_of_own_home(instance):
            return {self.names}
        tags = dict(instance.get_run_tags([NAMING_TAG])).get(NAMING_TAG, set())
        own = self.installation_tags
        return {self.names} | {
            Naming.from_tag(tag)
            for tag in tags
            if instance.get_runs(filters=dg.RunsFilter(tags={NAMING_TAG: tag, **own}), limit=1)
        }

    def list_asset_keys(self, names: Naming) -> set[dg.AssetKey]:
        """Return the keys that our assets have under a naming."""
        own = len(self.key_prefix)
        return {dg.AssetKey([*names.key_prefix, *key.path[own:]]) for key in self.asset_keys}

    @property
    def installation_tags(self) -> dict[str, str]:
        """Return the tag of every run of this installation."""
        return {INSTALLATION_TAG: str(self.postgres.identity().id)}

    def find_installations(self, instance: dg.DagsterInstance, repository: str) -> set[str]:
        """Return the ids of the installations for which a Dagster repository has launched runs.

        Args:
            repository: name of the repository and name of its code location, joined by @.
        """
        return {
            id_
            for id_ in _list_known_installations(instance)
            if instance.get_runs(
                filters=dg.RunsFilter(
                    tags={INSTALLATION_TAG: id_, REPOSITORY_LABEL_TAG: repository}
                ),
                limit=1,
            )
        }

    def is_shared_partition(self, instance: dg.DagsterInstance, partition: str) -> bool:
        """Return whether another installation has runs of a partition with this name."""
        if self._is_of_own_home(instance):
            return False
        others = _list_known_installations(instance) - {*self.installation_tags.values()}
        return bool(
            others
            and instance.get_runs(
                filters=dg.RunsFilter(
                    tags={PARTITION_TAG: partition, INSTALLATION_TAG: sorted(others)}
                ),
                limit=1,
            )
        )

    def owns(self, run: dg.DagsterRun) -> bool:
        """Return whether a run is for this installation; before the run starts, this is a guess.

        Before deleting data, use `select_runs_of_installation` or `select_exclusive_runs`, because
        assets of a team may have the same keys as ours.
        """
        if (installation := run.tags.get(INSTALLATION_TAG)) is not None:
            return installation == self.installation_tags[INSTALLATION_TAG]
        is_asset_run = run.job_name == IMPLICIT_ASSET_JOB_NAME
        return (is_asset_run or _is_of_own_code(run)) and self._has_only_own_parts(run)

    def select_runs_of_installation(
        self, instance: dg.DagsterInstance, runs: Iterable[dg.DagsterRun]
    ) -> list[dg.DagsterRun]:
        """Return the runs in which this installation's code ran, with or without a team's assets.

        In the instance of our home folder, these are all runs, including runs of the original if
        the catalog was cloned. In a team's instance, a run without an installation tag counts if
        our code launched it and the instance has no recorded run of another installation.
        """
        if self._is_of_own_home(instance):
            return list(runs)
        own = self.installation_tags[INSTALLATION_TAG]
        is_alone = _list_known_installations(instance) <= {own}
        return [
            run
            for run in runs
            if run.tags.get(INSTALLATION_TAG) == own
            or (INSTALLATION_TAG not in run.tags and is_alone and _is_of_own_code(run))
        ]

    def select_exclusive_runs(
        self, instance: dg.DagsterInstance, runs: Iterable[dg.DagsterRun]
    ) -> list[dg.DagsterRun]:
        """Return the runs in which only this installation's code ran."""
        return [
            run
            for run in self.select_runs_of_installation(instance, runs)
            if self._has_only_own_parts(run)
        ]

    def add_missing_tags(self, instance: dg.DagsterInstance, run: dg.DagsterRun) -> None:
        """Add missing tags to a started run, for example after a launch by the UI or a schedule.

        The tags are the installation and the naming. A run without assets of a team also gets a
        tag that disables Dagster's retries: our code has already retried, or the next sync will.
        """
        retries = NO_RUN_RETRIES if self._has_only_own_parts(run) else {}
        wanted_tags = {**self.installation_tags, **self.names.naming_tag, **retries}
        if not run.tags.items() >= wanted_tags.items():
            instance.add_run_tags(run.run_id, wanted_tags)

    def record_history(self, instance: dg.DagsterInstance, run: dg.DagsterRun) -> None:
        """Record that an instance contains a run of a tenant, or a run over all tenants.

        An ephemeral instance, which ends with its process, is not recorded.
        """
        if instance.is_ephemeral:
            return
        settings = self.postgres.installation.settings
        is_ours = self._is_of_own_home(instance)
        folder = settings.own_dagster_home if is_ours else instance.root_directory
        # The folder identifies the instance for people; its database URL may contain a password.
        place = f"{folder} on {read_machine_name()}"
        self.postgres.catalog().dagster_histories.record(
            run.tags.get(PARTITION_TAG), get_instance_id(instance), place
        )

    def forget_history(self, instance: dg.DagsterInstance, tenant_id: str) -> None:
        """Record that an instance no longer contains runs of a tenant."""
        self.postgres.catalog().dagster_histories.forget(tenant_id, get_instance_id(instance))

    def list_recorded_tenants(self, instance: dg.DagsterInstance) -> set[str]:
        """Return the tenants, including removed tenants, whose runs an instance may contain."""
        return self.postgres.catalog().dagster_histories.tenants(get_instance_id(instance))

    def _is_of_own_home(self, instance: dg.DagsterInstance) -> bool:
        """Return whether an instance belongs to our home folder, which has only our runs."""
        local = self.postgres.installation.settings.local
        return Path(instance.storage_directory()).is_relative_to(local)

    def _is_of_a_team(self, instance: dg.DagsterInstance, run: dg.DagsterRun) -> bool:
        """Return whether an untagged run is from a repository without runs of this installation."""
        origin = run.remote_job_origin
        if INSTALLATION_TAG in run.tags or origin is None or _is_of_own_code(run):
            return False
        users = self.find_installations(instance, origin.repository_origin.get_label())
        return self.installation_tags[INSTALLATION_TAG] not in users

    def _has_only_own_parts(self, run: dg.DagsterRun) -> bool:
        """Return whether a run's job or all its selected assets have names of ours."""
        if run.job_name != IMPLICIT_ASSET_JOB_NAME:
            # In a team's project, the job may have a different name than here.
            return run.job_name in self.jobs or run.tags.items() >= RUN_TAGS.items()
        names = Naming.from_tag(tag) if (tag := run.tags.get(NAMING_TAG)) else self.names
        checked = {key.asset_key for key in run.asset_check_selection or ()}
        selected = set(run.asset_selection or ()) | checked
        return bool(selected) and selected <= self.list_asset_keys(names)

    def list_unfinished(
        self, instance: dg.DagsterInstance, *, job: str | None = None, tenant: str | None = None
    ) -> list[dg.DagsterRun]:
        """Return our queued and running runs, optionally of only one job or tenant."""
        filters = dg.RunsFilter(
            job_name=job,
            statuses=list(UNFINISHED),
            tags={} if tenant is None else {PARTITION_TAG: tenant},
        )
        records = instance.get_run_records(filters=filters)
        now = datetime.now(UTC)
        runs = [record.dagster_run for record in records if _may_still_run(record, now)]
        return [run for run in runs if self.owns(run) and not self._is_of_a_team(instance, run)]

    def list_busy_partitions(self, instance: dg.DagsterInstance) -> set[str]:
        """Return the tenants that have a run queued or running."""
        runs = self.list_unfinished(instance)
        return {run.tags[PARTITION_TAG] for run in runs if PARTITION_TAG in run.tags}


def get_instance_id(instance: dg.DagsterInstance) -> str:
    """Return the id of an instance's run storage, the same for every folder that opens it.

    A storage that is not an SQL database has no id, and is identified by its folder.
    """
    return storage_id(instance) or f"{instance.root_directory} on {read_machine_name()}"


def _list_known_installations(instance: dg.DagsterInstance) -> set[str]:
    return dict(instance.get_run_tags([INSTALLATION_TAG])).get(INSTALLATION_TAG, set())


def _may_still_run(record: dg.RunRecord, now: datetime) -> bool:
    status = record.dagster_run.status
    if status in {dg.DagsterRunStatus.QUEUED, dg.DagsterRunStatus.STARTED}:
        return True
    return abs(now - record.update_timestamp) < _START_LIMIT


def _is_of_own_code(run: dg.DagsterRun) -> bool:
    if run.tags.items() >= RUN_TAGS.items():
        return True
    # Runs of earlier versions have no installation tag. They were launched from the code location
    # that loads only our code.
    origin = run.job_code_origin
    pointer = origin.repository_origin.code_pointer if origin is not None else None
    return getattr(pointer, "module", None) == "rag_assets.definitions"
