"""access: list, grant and revoke access scopes."""

from __future__ import annotations

from rag_assets.cli.commands.output import print_json, print_table, say
from rag_assets.cli.commands.session import Session, with_reading_session, with_session
from rag_assets.common.errors import ConfigurationError
from rag_assets.common.formatting import counted
from rag_assets.privacy.masker import masker_of
from rag_assets.storage.catalog.accounts.access import PUBLIC


@with_reading_session
def list_grants(session: Session, tenant_id: str, *, as_json: bool) -> None:
    """Print the principals of every scope."""
    session.catalog.tenants.get(tenant_id)
    grants = session.catalog.access.grants(tenant_id)
    if as_json:
        print_json({"tenant": tenant_id, "grants": grants})
        return
    print_table(
        ["scope", "can be read by"],
        [(PUBLIC, "everybody"), *((scope, ", ".join(who)) for scope, who in grants.items())],
    )


@with_session
def grant(
    session: Session, tenant_id: str, scope: str, principals: list[str], *, as_json: bool
) -> None:
    """Let principals read the documents of a scope."""
    _require_grantable(scope)
    _require_plain(session, scope, principals)
    session.catalog.access.grant(session.catalog.tenants.get(tenant_id).ref, scope, principals)
    _print_scope(session, tenant_id, scope, as_json=as_json)


@with_session
def revoke(
    session: Session, tenant_id: str, scope: str, principals: list[str], *, as_json: bool
) -> None:
    """Revoke a scope from principals."""
    _require_grantable(scope)
    ref = session.catalog.tenants.get(tenant_id).ref
    missing = len(set(principals)) - session.catalog.access.revoke(ref, scope, principals)
    if missing and not as_json:
        say(f"{counted(missing, 'principal')} did not have this grant.")
    _print_scope(session, tenant_id, scope, as_json=as_json)


def _require_grantable(scope: str) -> None:
    if scope == PUBLIC:
        raise ConfigurationError(
            "the scope public needs no grant, and cannot be revoked",
            hint="set a different scope for the documents in tenants.yaml: access.scope",
        )


def _require_plain(session: Session, scope: str, principals: list[str]) -> None:
    masker = masker_of(session.settings.local)
    if any(masker.holds_credential(name) for name in (scope, *principals)):
        raise ConfigurationError(
            "a scope or a principal must not contain a credential: both are stored unmasked",
            hint="choose a different name",
        )


def _print_scope(session: Session, tenant_id: str, scope: str, *, as_json: bool) -> None:
    who = session.catalog.access.grants(tenant_id).get(scope, [])
    if as_json:
        print_json({"tenant": tenant_id, "scope": scope, "principals": who})
    else:
        say(f"{scope} of {tenant_id} can be read by: {', '.join(who) or 'nobody'}")
