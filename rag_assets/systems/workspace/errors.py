"""The error for tenants that are not workspaces, and the check that raises it."""

from __future__ import annotations

from rag_assets.common.errors import ProblemKind, RagAssetsError
from rag_assets.storage.catalog.tenants.table import TenantRecord

PROFILE = "workspace"


class NoWorkspace(RagAssetsError):
    """The tenant is not a workspace, because it has a different profile."""

    problem_kind = ProblemKind(409, "no-workspace", "The tenant is not a workspace")


def require_workspace(record: TenantRecord, subject: str) -> TenantRecord:
    """Return the record of a workspace.

    Args:
        subject: subject of the request, for the hint: "pages" or "settings".

    Raises:
        NoWorkspace: the tenant has a different profile.
    """
    if record.profile != PROFILE:
        raise NoWorkspace(
            f"tenant {record.id!r} has the profile {record.profile!r}",
            hint=f"only tenants with the profile {PROFILE} have {subject}; choose such a tenant",
        )
    return record
