"""What the tests of the chain share: a driver of the stages for each module's installation."""

from __future__ import annotations

import pytest

from tests.driving import Driver
from tests.installation import Installation


@pytest.fixture(scope="module")
def driver(shared_installation: Installation) -> Driver:
    return Driver(shared_installation)
