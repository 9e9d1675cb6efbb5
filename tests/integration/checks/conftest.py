"""Tenants for the tests of checks: few syncs, and one installation per module."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from rag_assets.cli.runs import Runner
from tests.installation import FAST, Installation
from tests.integration.checks.faults import DOCUMENTS, CheckedTenant

MakeTenant = Callable[..., CheckedTenant]


@pytest.fixture(scope="module")
def runner(shared_installation: Installation) -> Runner:
    return Runner(shared_installation.session())


@pytest.fixture(scope="module")
def make_tenant(shared_installation: Installation, runner: Runner) -> MakeTenant:
    """Return a function that creates a synced tenant."""

    def make(name: str, files: dict[str, str] | None = None, **config: Any) -> CheckedTenant:
        folder = shared_installation.add_tenant(name, **{**FAST, **config})
        for file_name, text in (DOCUMENTS if files is None else files).items():
            (folder / file_name).write_text(text)
        shared_installation.synced(name)
        return CheckedTenant(shared_installation, runner, name, folder)

    return make


@pytest.fixture(scope="module")
def prepared(make_tenant: MakeTenant) -> CheckedTenant:
    return make_tenant("prepared", drift={"days": 1})


@pytest.fixture
def tenant(prepared: CheckedTenant) -> Iterator[CheckedTenant]:
    """Return the module's tenant; its lake and index are restored after each test."""
    with prepared.restored():
        yield prepared
