"""The definitions that systems add to a team's project."""

from __future__ import annotations

from rag_assets.dagster import build_defs
from rag_assets.plugins.registry import installed_systems
from tests.unit.dagster.test_project import names


def test_a_system_that_is_left_out_adds_nothing() -> None:
    """A project without tenants of a system has none of its sensors and schedules."""
    kinds = ("jobs", "sensors", "schedules")
    core = names(build_defs(name="kb", systems=[]))
    every = {kind: set(core[kind]) for kind in kinds}
    for installed in installed_systems():
        found = names(build_defs(name="kb", systems=[installed.name]))
        for kind in kinds:
            own = {f"kb_{name}" for name in getattr(installed.system, kind)}
            assert found[kind] == core[kind] | own, (installed.name, kind)
            every[kind] |= own
    assert all(every[kind] > core[kind] for kind in kinds), "systems add some of each kind"
    assert {kind: names(build_defs(name="kb"))[kind] for kind in kinds} == every
