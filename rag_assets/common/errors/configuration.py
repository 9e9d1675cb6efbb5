"""Errors in settings, tenants.yaml and arguments."""

from __future__ import annotations

from collections.abc import Sequence

from rag_assets.common.errors.base import RagAssetsError

_SHOWN_LINES = 10


class ConfigurationError(RagAssetsError):
    """A setting, a tenant's configuration or an argument is not usable."""


class TenantDisabled(ConfigurationError):
    """The tenant is disabled, so no run works on it.

    Args:
        tenant_id: the tenant.
    """

    def __init__(self, tenant_id: str) -> None:
        super().__init__(
            f"tenant {tenant_id!r} is disabled, so it is not indexed",
            hint=f"enable the tenant with `rag-assets tenants enable {tenant_id}`",
        )


class ForeignInstallation(ConfigurationError):
    """A catalog, a folder, an index or a process belongs to another installation, or is a copy."""


class PlaceChanged(ConfigurationError):
    """A store of the installation is not at the address that its catalog records."""


class UnknownTenant(ConfigurationError):
    """No tenant has that id, or it has been removed."""


class UnknownProject(ConfigurationError):
    """No tenant has this project and organization, or the caller's token is for another project."""


class UnknownSource(ConfigurationError):
    """No source of the tenant has that name."""


class UnknownGeneration(ConfigurationError):
    """No build of the tenant has that number, or the build is being removed."""


class NoRecordsSource(ConfigurationError):
    """No source of the tenant accepts pushed records, or several do and the request names none."""


class NoUploadsSource(ConfigurationError):
    """No source of the tenant accepts uploads, or several do and the request names none."""


class UnknownProfile(ConfigurationError):
    """No profile has that name."""


class WrongJudgements(ConfigurationError):
    """Lines of judgement files are wrong; none of these files was stored.

    Args:
        lines: each with its file, its number and the reason; at least one.
    """

    def __init__(self, lines: Sequence[str]) -> None:
        more = len(lines) - _SHOWN_LINES
        rest = f"; and {more:,} more" if more > 0 else ""
        super().__init__(
            f"{'; '.join(lines[:_SHOWN_LINES])}{rest}",
            hint="correct these lines and import again: nothing was stored",
        )
        self.lines = tuple(lines)


class NoReranker(ConfigurationError):
    """A search requires a reranker, and the tenant has none."""


class NoChatModel(ConfigurationError):
    """The tenant lacks a chat model that is usable as configured."""


class ConfiguredByOperator(RagAssetsError):
    """The operator defines the project in tenants.yaml; the API cannot change it."""
