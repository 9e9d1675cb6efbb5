"""A violated constraint is reported by its name."""

from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any, NoReturn, cast

import psycopg
import pytest
from sqlalchemy.exc import IntegrityError

from rag_assets.common.errors import ConfigurationError
from rag_assets.storage.catalog.database import Database
from rag_assets.storage.catalog.tables import ONE_TENANT_PER_PROJECT
from rag_assets.storage.catalog.tenants.table import TenantTable


class Violation(psycopg.IntegrityError):
    """An error of Postgres that names a constraint."""

    def __init__(self, constraint: str) -> None:
        super().__init__(constraint)
        self._constraint = constraint

    @property
    def diag(self) -> Any:
        return SimpleNamespace(constraint_name=self._constraint)


def put(constraint: str) -> None:
    @contextmanager
    def begin() -> Any:
        yield fail()

    def fail() -> NoReturn:
        raise IntegrityError("", {}, Violation(constraint))

    table = TenantTable(cast("Database", SimpleNamespace(begin=begin)))
    table.put("a", {"id": "a"}, enabled=True, origin="teams")


def test_put_of_another_tenants_project_names_both() -> None:
    with pytest.raises(ConfigurationError, match="'a': its project already belongs"):
        put(ONE_TENANT_PER_PROJECT)


@pytest.mark.parametrize("constraint", ["ck_tenants_state", "pk_tenants"])
def test_put_with_another_violation_does_not_blame_the_project(constraint: str) -> None:
    with pytest.raises(IntegrityError, match=constraint):
        put(constraint)
