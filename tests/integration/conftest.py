"""Fixtures of the chain: a driver for each module's installation, and a tenant for each test."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.driving import Driver, tenant_named_after
from tests.installation import FAST, Installation
from tests.integration.aging import AgingTenant, Make
from tests.integration.builds import DOCUMENTS, prose


@pytest.fixture(scope="module")
def driver(shared_installation: Installation) -> Driver:
    return Driver(shared_installation)


@pytest.fixture
def tenant(request: pytest.FixtureRequest) -> str:
    """Return the id of a tenant, derived from the name of the test."""
    return tenant_named_after(request)


@pytest.fixture
def files(shared_installation: Installation, driver: Driver, tenant: str) -> Path:
    """Create and sync that tenant; return its folder."""
    folder = shared_installation.add_tenant(tenant, **FAST)
    for number in range(DOCUMENTS):
        (folder / f"{number}.md").write_text(prose(str(number)))
    driver.sync(tenant)
    return folder


@pytest.fixture
def make(shared_installation: Installation, driver: Driver, tenant: str) -> Make:
    """Return a function that creates the test's tenant, whose documents can age."""

    def made(**config: object) -> AgingTenant:
        return AgingTenant.made(shared_installation, driver, tenant, **config)

    return made
