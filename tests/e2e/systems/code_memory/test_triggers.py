"""Every trigger of a sync of code memory, with the daemon and the change watcher.

The triggers: a new tenant, an edit of a worktree, an event of a run, a Git hook, the sensor alone,
a request to index again, and the nightly check for drift.
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import dagster as dg
import pytest
from sqlalchemy import delete, func, select

from rag_assets.common.errors import UnknownTenant
from rag_assets.search.model import Caller
from rag_assets.systems.code_memory.catalog.tables import edges
from rag_assets.systems.code_memory.retrieval.walk import Walker
from rag_assets.systems.code_memory.runs import Run, RunEvent, Runs
from rag_assets.systems.code_memory.service import request_reindexing
from rag_assets.tenants.model import Tenant
from tests.e2e.running import PATIENCE, Daemon, running_daemon, wait_for
from tests.installation import FAST, Installation
from tests.repositories import MadeRepository

pytestmark = pytest.mark.timeout(900)
PROMISED_SECONDS = 60
"""From a trigger to what follows from it; other work may hold up one of several."""
AT_HEAD, IN_TREE = "at-head", "in-tree"
FILES = {
    "shop/base.py": "class Base:\n    pass\n",
    "shop/bill.py": "from shop.base import Base\n\n\nclass Bill(Base):\n    pass\n",
}


def heir(name: str) -> str:
    return f"from shop.base import Base\n\n\nclass {name}(Base):\n    pass\n"


@dataclass
class Followed:
    """Two tenants, of a branch and of a worktree, and a daemon that follows them."""

    daemon: Daemon
    made: dict[str, MadeRepository]
    seconds: dict[str, float] = field(default_factory=dict)

    def heirs(self, tenant: str) -> set[str]:
        """Return the classes that extend Base, according to relations."""
        walker = Walker(self.daemon.catalog)
        try:
            walk = walker.walk_from_name(tenant, Caller(), "shop.base.Base", direction="in")
        except UnknownTenant:
            return set()  # The daemon has not read tenants.yaml yet.
        return {relation.source for relation in walk.relations if relation.kind == "extends"}

    def wait(self, trigger: str, condition: Callable[[], bool]) -> None:
        self.seconds[trigger] = wait_for(condition, PATIENCE, trigger)

    def waits_for_heir(self, trigger: str, tenant: str, name: str) -> None:
        self.wait(trigger, lambda: f"shop.{name.lower()}.{name}" in self.heirs(tenant))
        assert self.daemon.finds(tenant, f"class {name}(Base)")


def add(installation: Installation, tenant: str, made: MadeRepository, ref: str) -> None:
    installation.add_tenant(
        tenant,
        **FAST,
        profile="code-memory",
        organization="acme",
        project=tenant,
        drift={"days": 1},  # each night compares everything
        sources=[{"name": "repo", "type": "git", "root": str(made.root), "ref": ref}],
    )


@pytest.fixture(scope="module")
def followed(shared_installation: Installation) -> Iterator[Followed]:
    sources = shared_installation.home.parent / "sources"
    made = {name: MadeRepository(sources / name) for name in (AT_HEAD, IN_TREE)}
    for one in made.values():
        one.commit(FILES)
    with running_daemon(shared_installation, watched=True) as daemon:
        yield Followed(daemon, made)


@pytest.fixture(scope="module")
def added(followed: Followed) -> Followed:
    """Add both tenants to tenants.yaml while the daemon runs; wait until they are searchable."""
    installation = followed.daemon.installation
    add(installation, AT_HEAD, followed.made[AT_HEAD], "HEAD")
    add(installation, IN_TREE, followed.made[IN_TREE], "worktree")
    for tenant in (AT_HEAD, IN_TREE):
        followed.waits_for_heir(f"added {tenant}", tenant, "Bill")
    return followed


@pytest.mark.ci
def test_an_edit_of_a_worktree_is_followed(added: Followed) -> None:
    added.made[IN_TREE].write({"shop/edited.py": heir("Edited")}, at=None)
    added.waits_for_heir("edit", IN_TREE, "Edited")


def test_an_event_of_a_run_is_found_and_so_is_the_file_that_it_names(added: Followed) -> None:
    catalog = added.daemon.catalog
    record = catalog.tenants.get(AT_HEAD)
    added.made[AT_HEAD].commit({"shop/told.py": heir("Told")})
    runs = Runs(catalog.database)
    runs.put(record.ref, Run("r1"), by="a test")
    given = {
        "id": "e1",
        "kind": "file_created",
        "path": "shop/told.py",
        "action": "create",
        "summary": "A class that is told of.",
    }
    event = RunEvent.model_validate(given)
    assert runs.receive(record.ref, Tenant.from_config(record.config), "r1", [event]) == 1
    added.waits_for_heir("event", AT_HEAD, "Told")
    added.wait("its document", lambda: added.daemon.finds(AT_HEAD, "A class that is told of."))


@pytest.mark.ci
def test_a_hook_of_git_tells_of_a_commit(added: Followed) -> None:
    made = added.made[AT_HEAD]
    installation = added.daemon.installation
    done = installation.command("hook", "install", AT_HEAD, str(made.root), "--json")
    assert done.code == 0, done.err
    made.commit({"shop/hooked.py": heir("Hooked")})
    hook = made.folder / "hooks" / "post-commit"
    subprocess.run([str(hook)], cwd=made.root, check=True)
    added.waits_for_heir("hook", AT_HEAD, "Hooked")
    assert installation.command("hook", "remove", AT_HEAD, str(made.root)).code == 0
    assert not hook.exists()


def test_the_sensor_finds_a_commit_that_nothing_tells_of(added: Followed) -> None:
    added.made[AT_HEAD].commit({"shop/silent.py": heir("Silent")})
    added.waits_for_heir("sensor", AT_HEAD, "Silent")


def test_a_request_indexes_everything_again(added: Followed) -> None:
    catalog, settings = added.daemon.catalog, added.daemon.installation.session().settings
    added.daemon.idle(AT_HEAD)
    record = catalog.tenants.get(AT_HEAD)

    def editions() -> set[int]:
        found = catalog.documents.all(AT_HEAD)
        return {one.reindex_requests for one in found if one.source == "repo"}

    def waiting() -> int:
        return catalog.documents.count_by_status(AT_HEAD).get("PROCESSING", 0)

    before = editions()
    answer = request_reindexing(catalog, settings, record, (), by="a test")
    assert answer.commit == str(added.made[AT_HEAD].git.head.target)
    assert answer.documents >= len(FILES)
    added.wait("index-rag", lambda: not waiting() and min(editions()) > max(before))
    assert added.heirs(AT_HEAD) >= {"shop.bill.Bill", "shop.told.Told"}


def test_the_nightly_check_finds_lost_relations_and_has_them_made_anew(added: Followed) -> None:
    daemon = added.daemon
    daemon.idle(AT_HEAD)

    def count() -> int:
        with daemon.catalog.database.begin() as connection:
            query = select(func.count()).select_from(edges).where(edges.c.tenant == AT_HEAD)
            return connection.scalar(query) or 0

    before = count()
    with daemon.catalog.database.begin() as connection:
        lost = edges.c.tenant == AT_HEAD, edges.c.kind == "extends"
        connection.execute(delete(edges).where(*lost))
    assert not added.heirs(AT_HEAD)
    assert count() < before
    night = daemon.ended(daemon.launch("detect_drift"))
    assert night.dagster_run.status is dg.DagsterRunStatus.SUCCESS
    added.wait("drift", lambda: count() == before)
    assert "shop.bill.Bill" in added.heirs(AT_HEAD)
    assert daemon.runs(AT_HEAD, "repair_index")


def test_all_triggers_are_followed_in_time(added: Followed) -> None:
    late = {name: seconds for name, seconds in added.seconds.items() if seconds > PROMISED_SECONDS}
    assert len(late) <= 1, added.seconds
