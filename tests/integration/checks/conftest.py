"""Tenants for the tests of checks: synced once each, in one installation per module."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from rag_assets.commands.runs import Runner
from tests.installation import FAST, Installation
from tests.integration.checks.faults import DOCUMENTS, CheckedTenant

MakeTenant = Callable[..., CheckedTenant]


@pytest.fixture(scope="module")
def runner(shared_installation: Installation) -> Runner:
    return Runner(shared_installation.session())


@pytest.fixture
def make_tenant(
    shared_installation: Installation, runner: Runner, request: pytest.FixtureRequest
) -> MakeTenant:
    """Makes a synced tenant named after the test."""

    def make(files: dict[str, str] | None = None, **config: Any) -> CheckedTenant:
        name = "".join(c if c.isalnum() else "-" for c in request.node.name.lower()).strip("-")
        name = "-".join(part for part in name.removeprefix("test-").split("-") if part)[:50]
        name = name.rstrip("-")
        folder = shared_installation.add_tenant(name, **{**FAST, **config})
        for file_name, text in (DOCUMENTS if files is None else files).items():
            (folder / file_name).write_text(text)
        shared_installation.synced(name)
        return CheckedTenant(shared_installation, runner, name, folder)

    return make


@pytest.fixture
def tenant(make_tenant: MakeTenant) -> CheckedTenant:
    return make_tenant()
