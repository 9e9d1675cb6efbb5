"""Runs whose process is in another container fail when it has ended, not before."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import dagster as dg
import pytest
from dagster._core.launcher.base import WorkerStatus

from rag_assets.resources.tenant_lock import PROCESS_TAG, fail_abandoned_runs, get_marks_folder
from rag_assets.runtime.liveness import ProcessIdentity, wait_until
from tests.installation import FAST, Installation
from tests.namespaces import needs_namespaces, start_in_namespace

RUN = """
import sys
import dagster as dg
from rag_assets.cli.runs import get_repository
from rag_assets.cli.session import Session
from rag_assets.resources.own_runs import PARTITION_TAG
from rag_assets.resources.tenant_lock import build_process_tags
with Session() as session:
    run = session.instance.create_run_for_job(
        job_def=get_repository().get_job("check_tenant"),
        tags={PARTITION_TAG: "elsewhere", **build_process_tags(session.settings)},
        status=dg.DagsterRunStatus.STARTED,
    )
    print("run", run.run_id, flush=True)
    sys.stdin.read()
"""


@needs_namespaces
@pytest.mark.long
def test_a_run_in_another_container_is_failed_when_that_ends_and_not_before(
    shared_installation: Installation,
) -> None:
    shared_installation.add_tenant("elsewhere", **FAST)
    session = shared_installation.session()
    instance, catalog = session.instance, session.catalog
    container = start_in_namespace(RUN, environment=shared_installation.environment)
    try:
        assert container.stdout is not None
        lines = iter(container.stdout.readline, "")
        run_id = next(line for line in lines if line.startswith("run ")).split()[1]
        run = instance.get_run_by_id(run_id)
        assert run is not None
        mark = ProcessIdentity.parse(run.tags[PROCESS_TAG]).get_mark_path(
            get_marks_folder(session.settings)
        )
        assert mark.exists()
        launcher = instance.run_launcher
        assert fail_abandoned_runs(instance, catalog, session.settings) == []
        assert launcher.check_run_worker_health(run).status is WorkerStatus.RUNNING
        assert launcher.terminate(run_id) is False, "its pid is another process's here"
    finally:
        container.kill()
        container.communicate()  # it may end normally before the signal arrives

    def has_failed() -> bool:
        return launcher.check_run_worker_health(run).status is WorkerStatus.FAILED

    assert wait_until(has_failed, 60)
    assert fail_abandoned_runs(instance, catalog, session.settings) == [run_id]
    ended = instance.get_run_by_id(run_id)
    assert ended is not None
    assert ended.status is dg.DagsterRunStatus.FAILURE


def test_a_process_elsewhere_without_a_mark_may_live(tmp_path: Path) -> None:
    own = ProcessIdentity.from_pid(os.getpid())
    assert own == ProcessIdentity.parse(str(own))
    assert (own.is_alive(), own.has_ended(tmp_path)) == (True, False)
    for elsewhere in (
        ProcessIdentity("another-host", own.pid, own.birth, own.namespace),
        ProcessIdentity(own.host, own.pid, own.birth, "pid:[1]"),
        ProcessIdentity(own.host, own.pid, "another-boot/7", own.namespace),
    ):
        assert (elsewhere.is_alive(), elsewhere.has_ended(tmp_path)) == (False, False)
        elsewhere.get_mark_path(tmp_path).touch()
        assert elsewhere.has_ended(tmp_path), "its mark is there, and nothing holds it"


def test_a_tag_of_an_earlier_version_counts_on_its_host(tmp_path: Path) -> None:
    own = ProcessIdentity.from_pid(os.getpid())
    old = ProcessIdentity.parse(f"{own.host} {own.pid} {own.birth}")
    assert (old.is_alive(), old.has_ended(tmp_path)) == (True, False)
    assert ProcessIdentity.parse(f"{own.host} {own.pid} boot/0").has_ended(tmp_path)


@pytest.mark.parametrize("end", [subprocess.Popen.kill, subprocess.Popen.communicate])
def test_a_mark_is_locked_while_its_process_lives_and_old_ones_are_swept(
    tmp_path: Path, end: Callable[[subprocess.Popen[bytes]], object]
) -> None:
    recent, old, dated = (tmp_path / name for name in ("recent", "old", "dated"))
    for path in (recent, old):
        path.touch()
    dated.write_text("ended")
    for path in (old, dated):
        os.utime(path, (0, 0))
    program = (
        "import sys\nfrom pathlib import Path\n"
        "from rag_assets.runtime.liveness import hold_liveness_lock\n"
        "hold_liveness_lock(Path(sys.argv[1]))\nprint('marked', flush=True)\nsys.stdin.read()"
    )
    marked = subprocess.Popen(
        [sys.executable, "-c", program, tmp_path], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert marked.stdout is not None
    assert marked.stdout.readline() == b"marked\n"
    assert [path.exists() for path in (recent, old, dated)] == [True, True, False]
    assert old.stat().st_mtime > 0, "it is kept as long as any from the day that it is seen free"
    mark = ProcessIdentity.from_pid(marked.pid).get_mark_path(tmp_path)
    elsewhere = ProcessIdentity.parse(
        str(ProcessIdentity.from_pid(marked.pid)).replace(":[", ":[9")
    )
    mark.rename(elsewhere.get_mark_path(tmp_path))
    assert not elsewhere.has_ended(tmp_path)
    end(marked)
    marked.communicate()
    assert wait_until(lambda: elsewhere.has_ended(tmp_path), 5)
