"""The definitions that Dagster loads with all systems."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import islice
from pathlib import Path

import dagster as dg
import pytest
from dagster._utils.schedules import schedule_execution_time_iterator

from rag_assets.definitions import build_defs
from tests.unit.test_definitions import ASSETS, CHECKS, SCHEDULES, rows

ROOT = Path(__file__).resolve().parents[3]
ALL_ASSETS = ASSETS | {"relations": "code"}
ALL_CHECKS = CHECKS | {"search_index.relations"}


@pytest.fixture(scope="module")
def with_systems() -> dg.RepositoryDefinition:
    return build_defs().get_repository_def()


def test_assets_are_these_in_these_groups(with_systems: dg.RepositoryDefinition) -> None:
    graph = with_systems.asset_graph
    keys = graph.get_all_asset_keys()
    assert {key.to_user_string(): graph.get(key).group_name for key in keys} == ALL_ASSETS
    assert rows("ui.md", r"asset `(\w+)` \|") == set(ALL_ASSETS)


def test_checks_are_these(with_systems: dg.RepositoryDefinition) -> None:
    keys = with_systems.asset_graph.asset_check_keys
    assert {f"{key.asset_key.to_user_string()}.{key.name}" for key in keys} == ALL_CHECKS
    text = (ROOT / "docs" / "architecture.md").read_text().partition("\n## Checks\n")[2]
    documented = re.findall(r"^\| `(\w+)` \| ([a-z_, ]+) \|", text, re.MULTILINE)
    assert {f"{asset}.{name}" for name, on in documented for asset in on.split(", ")} == ALL_CHECKS


@pytest.fixture
def berlin(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Use a time zone whose clocks skip 02:00 in spring and repeat it in autumn."""
    with monkeypatch.context() as environment:
        environment.setenv("TZ", "Europe/Berlin")
        time.tzset()
        yield
    time.tzset()


@pytest.mark.usefixtures("berlin")
def test_schedules_run_once_a_day_when_clocks_change() -> None:
    repository = build_defs().get_repository_def()
    zones = {schedule.name: schedule.execution_timezone for schedule in repository.schedule_defs}
    assert zones.keys() > SCHEDULES, "those of systems as well"
    assert set(zones.values()) == {"UTC"}, "no time zone that changes"
    nightly = repository.get_schedule_def("nightly_drift")
    for changed in (datetime(2027, 3, 27, tzinfo=UTC), datetime(2027, 10, 30, tzinfo=UTC)):
        times = schedule_execution_time_iterator(
            changed.timestamp(), nightly.cron_schedule, nightly.execution_timezone
        )
        days = [changed + timedelta(days=day, hours=2) for day in range(3)]
        assert list(islice(times, 3)) == days
