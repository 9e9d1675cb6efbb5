"""panel: print a link that signs in."""

from __future__ import annotations

from rag_assets.cli.commands.output import print_json, say
from rag_assets.cli.commands.session import Session, with_session
from rag_assets.common.errors import ConfigurationError
from rag_assets.common.principals import MEMBERS
from rag_assets.storage.catalog.accounts.panel_sessions import TokenHolder

_OPERATOR = "operator"
"""Holder of sessions that this command opens: whoever runs it can access the catalog anyway."""


@with_session
def print_link(session: Session, tenant_id: str, port: int, *, as_json: bool) -> None:
    """Print the link.

    Raises:
        ConfigurationError: the tenant's profile lacks a panel, or RAG_ASSETS_PANEL_URL is unusable.
        UnknownTenant: no tenant has that id.
    """
    from rag_assets.panel.sessions import make_link
    from rag_assets.panel.settings import PanelSettings
    from rag_assets.plugins.registry import installed_systems

    settings = PanelSettings.from_environment()
    record = session.catalog.tenants.get(tenant_id)
    profile = record.config["profile"]
    profiles = {part.owner.name for part in installed_systems().parts("panels").values()}
    if profile not in profiles:
        raise ConfigurationError(
            f"tenant {tenant_id!r} has the profile {profile!r}, which has no panel",
            hint=f"these profiles have a panel: {', '.join(sorted(profiles))}",
        )
    origin = settings.new_session_origin(port)
    link = make_link(session.catalog, record.ref, TokenHolder(_OPERATOR, (MEMBERS,)), origin)
    if as_json:
        print_json({"tenant": tenant_id, "url": link.url, "expires_at": link.expires_at})
        return
    say(link.url)
    say("\nIt signs in once, within a minute.")
