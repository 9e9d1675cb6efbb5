"""Implementation of the commands of `rag-assets hook`."""

from __future__ import annotations

from pathlib import Path

from rag_assets.cli.commands.output import print_json, say
from rag_assets.cli.commands.session import Session, with_session
from rag_assets.common.errors import ConfigurationError
from rag_assets.common.settings import Settings
from rag_assets.systems.code_memory.hooks.installing import (
    ChangedHooks,
    install_hooks,
    remove_hooks,
)
from rag_assets.systems.code_memory.sources.git import GitConfig
from rag_assets.tenants.model import Tenant


@with_session
def install(session: Session, tenant: str, repository: Path, *, as_json: bool) -> None:
    """Install a tenant's hooks in a repository that one of its sources reads."""
    record = session.catalog.tenants.get(tenant)
    wanted = repository.expanduser().resolve()
    sources = Tenant.from_config(record.config).sources
    roots = {
        (session.settings.home / source.root).resolve()
        for source in sources
        if isinstance(source, GitConfig)
    }
    if wanted not in roots:
        known = ", ".join(sorted(map(str, roots))) or "none"
        raise ConfigurationError(
            f"tenant {tenant!r} has no source of type git with the root {str(wanted)!r}",
            hint=f"its repositories are: {known}",
        )
    _show(install_hooks(session.settings.local, tenant, wanted), "installed", as_json=as_json)


def remove(tenant: str, repository: Path, *, as_json: bool) -> None:
    """Remove a tenant's hooks from a repository, whether or not the tenant still exists."""
    Settings.from_environment()
    _show(remove_hooks(tenant, repository), "removed", as_json=as_json)


def _show(changed: ChangedHooks, what: str, *, as_json: bool) -> None:
    if as_json:
        shown = {"folder": str(changed.folder), "hooks": changed.hooks, "kept": changed.kept}
        print_json(shown)
        return
    if not changed.hooks:
        say(f"Nothing was to be {what} in {changed.folder}.")
        return
    say(f"{what.capitalize()} in {changed.folder}: {', '.join(changed.hooks)}.")
    for name in changed.kept:
        say(f"The former {name} was kept beside it, and still runs.")
