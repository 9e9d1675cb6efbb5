"""Settings, tenants.yaml and arguments that are not usable."""

from __future__ import annotations

from collections.abc import Sequence

from rag_assets.common.errors.base import RagAssetsError

_SHOWN_LINES = 10


class ConfigurationError(RagAssetsError):
    """A setting, a tenant's configuration or an argument is not usable."""


class ForeignInstallation(ConfigurationError):
    """A catalog, a folder, an index or a process belongs to another installation, or is a copy."""


class PlaceChanged(ConfigurationError):
    """A store of the installation is not at the address that its catalog records."""


class UnknownTenant(ConfigurationError):
    """No tenant has that id, or it has been removed."""


class UnknownProject(ConfigurationError):
    """No tenant is this project of this organization, or the caller's token is not for it."""


class UnknownSource(ConfigurationError):
    """The tenant has no source of that name."""


class UnknownGeneration(ConfigurationError):
    """The tenant has no build of that number, or it is being removed."""


class NoRecordsSource(ConfigurationError):
    """The tenant has no source that records can be pushed to, or several and none was named."""


class NoUploadsSource(ConfigurationError):
    """The tenant has no source that files can be uploaded to, or several and none was named."""


class UnknownProfile(ConfigurationError):
    """No profile has that name."""


class WrongJudgements(ConfigurationError):
    """Lines of files of judgements are wrong; nothing of these files was stored.

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
    """The tenant has no reranker, and a search requires one."""


class NoChatModel(ConfigurationError):
    """The tenant has no chat model, or none that is usable as configured."""


class ConfiguredByOperator(RagAssetsError):
    """The operator defines the project in tenants.yaml: it is not changed over the API."""
