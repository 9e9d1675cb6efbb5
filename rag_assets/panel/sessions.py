"""Secrets of sessions, and codes of links: random, shown once, stored as hashes.

Both are 256 random bits, so a plain SHA-256 cannot be reversed. The hash also covers the origin, so
a secret is valid only at its own origin. The token that protects against forged requests is derived
from the session's secret, so it is not stored and is not valid for any other session.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from rag_assets.api.identity import Identity
from rag_assets.common.errors import InvalidRequest, UnknownProject, UnknownTenant
from rag_assets.panel.settings import PATH
from rag_assets.storage.catalog.accounts.panel_sessions import TokenHolder
from rag_assets.storage.catalog.catalog import Catalog
from rag_assets.storage.catalog.database import TenantRef
from rag_assets.storage.catalog.tenants.table import TenantRecord

_BYTES = 32
_PURPOSE = b"requests of the panel's pages"


@dataclass(frozen=True, slots=True)
class Link:
    """A link that opens one session.

    Attributes:
        url: address with the code, which is stored only as a hash.
        expires_at: when the link expires.
    """

    url: str
    expires_at: datetime


def build_holder(identity: Identity) -> TokenHolder:
    """Return the holder of a session that is opened with this identity's token."""
    principals = identity.caller.principals
    return TokenHolder(identity.name, principals, identity.token_id, identity.expires_at)


def make_link(catalog: Catalog, ref: TenantRef, holder: TokenHolder, origin: str) -> Link:
    """Create a link that opens one session of a tenant.

    Args:
        origin: origin of the session; see PanelSettings.new_session_origin.

    Raises:
        TenantGone: the tenant was removed.
    """
    code = secrets.token_urlsafe(_BYTES)
    expires_at = catalog.panel_sessions.add_code(ref, hash_secret(code, origin), holder)
    return Link(f"{origin}{PATH}/enter?code={code}", expires_at)


def redeem_code(catalog: Catalog, code: str, origin: str) -> str | None:
    """Return the secret of the session that a code opens; None if the code is not valid.

    A code is not valid if it is used up, expired or unknown.
    """
    secret = secrets.token_urlsafe(_BYTES)
    is_valid = catalog.panel_sessions.redeem(hash_secret(code, origin), hash_secret(secret, origin))
    return secret if is_valid else None


def begin_session(catalog: Catalog, ref: TenantRef, holder: TokenHolder, origin: str) -> str:
    """Start a session without a code, and return its secret.

    Raises:
        TenantGone: the tenant was removed.
    """
    secret = secrets.token_urlsafe(_BYTES)
    catalog.panel_sessions.begin(ref, hash_secret(secret, origin), holder)
    return secret


def request_token(secret: str) -> str:
    """Return the token that unsafe requests from a session's pages must contain."""
    return hmac.new(secret.encode(errors="surrogatepass"), _PURPOSE, hashlib.sha256).hexdigest()


def hash_secret(secret: str, origin: str) -> bytes:
    """Return the hash that is stored for a secret at one origin."""
    return hashlib.sha256(f"{origin} {secret}".encode(errors="surrogatepass")).digest()


def panel_tenant(
    catalog: Catalog, identity: Identity, project: str | None, profiles: Sequence[str]
) -> TenantRecord:
    """Return the tenant that a token administers.

    Args:
        catalog: contains the projects.
        identity: identity of the token.
        project: id of the project in the application; None stands for the only tenant of the token.
        profiles: profiles of the tenants that have a panel.

    Raises:
        Forbidden: the token's role is not admin; or no project is named and the token is not for
            exactly one tenant.
        UnknownProject: the token covers no project with this id, although another organization may
            have one.
        InvalidRequest: the token covers several projects with this id.
    """
    if project is None:
        tenant_id = identity.require_admin_tenant(None)
        try:
            found = [catalog.tenants.get(tenant_id)]
        except UnknownTenant:
            found = []
    else:
        identity.require_admin()
        found = [
            record
            for profile in profiles
            for record in catalog.projects.list_covered(identity.tenants, profile, project)
        ]
    found = [record for record in found if record.config["profile"] in profiles]
    if not found:
        raise UnknownProject(
            "the token covers no project with this id",
            hint="create the project, or use a token that covers it",
        )
    if len(found) > 1:
        raise InvalidRequest(
            "the token covers several projects with this id",
            hint="use a token that covers only one of them",
        )
    return found[0]
