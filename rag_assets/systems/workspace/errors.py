"""The error of requests to tenants that are not workspaces, and the check for it."""

from __future__ import annotations

from rag_assets.common.errors import ProblemKind, RagAssetsError
from rag_assets.storage.catalog.tenants.table import TenantRecord

PROFILE = "workspace"


class NoWorkspace(RagAssetsError):
    """The tenant is not a workspace, because it has a different profile."""

    problem_kind = ProblemKind(409, "no-workspace", "The tenant is no workspace")


def require_workspace(record: TenantRecord, what: str) -> TenantRecord:
    """Return the record of a workspace.

    Args:
        what: the subject of the request, for the error: "pages", "settings".

    Raises:
        NoWorkspace: the tenant has a different profile.
    """
    if record.profile != PROFILE:
        raise NoWorkspace(
            f"tenant {record.id!r} has the profile {record.profile!r}",
            hint=f"only tenants with the profile {PROFILE} have {what}; choose such a tenant",
        )
    return record
