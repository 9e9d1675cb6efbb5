"""Secrets of sessions, and codes of links, which are stored only as hashes.

Both have 256 random bits, so a plain SHA-256 cannot be reversed. The hash covers the origin, so a
secret is valid only at its own origin. The token against forged requests is derived from the secret
of the session.
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

_SECRET_BYTES = 32
_PURPOSE = b"requests of the panel's pages"


@dataclass(frozen=True, slots=True)
class Link:
    """A link that opens one session."""

    url: str
    expires_at: datetime


def build_holder(identity: Identity) -> TokenHolder:
    """Return the holder of a session that was opened with this identity's token."""
    principals = identity.caller.principals
    return TokenHolder(identity.name, principals, identity.token_id, identity.expires_at)


def create_link(catalog: Catalog, ref: TenantRef, holder: TokenHolder, origin: str) -> Link:
    """Create a link that opens one session of a tenant.

    Args:
        origin: origin of the session; see PanelSettings.create_session_origin.
    """
    code = secrets.token_urlsafe(_SECRET_BYTES)
    expires_at = catalog.panel_sessions.add_code(ref, hash_secret(code, origin), holder)
    return Link(f"{origin}{PATH}/enter?code={code}", expires_at)


def redeem_code(catalog: Catalog, code: str, origin: str) -> str | None:
    """Start the session of a code and return its secret; None for an invalid code.

    A code is invalid if it is used up, expired or unknown.
    """
    secret = secrets.token_urlsafe(_SECRET_BYTES)
    is_valid = catalog.panel_sessions.redeem(hash_secret(code, origin), hash_secret(secret, origin))
    return secret if is_valid else None


def start_session(catalog: Catalog, ref: TenantRef, holder: TokenHolder, origin: str) -> str:
    """Start a session without a code, and return its secret."""
    secret = secrets.token_urlsafe(_SECRET_BYTES)
    catalog.panel_sessions.begin(ref, hash_secret(secret, origin), holder)
    return secret


def derive_request_token(secret: str) -> str:
    """Return the token that unsafe requests of a session must contain."""
    return hmac.new(secret.encode(errors="surrogatepass"), _PURPOSE, hashlib.sha256).hexdigest()


def hash_secret(secret: str, origin: str) -> bytes:
    """Return the hash under which a secret is stored; the hash is valid only at this origin."""
    return hashlib.sha256(f"{origin} {secret}".encode(errors="surrogatepass")).digest()


def get_panel_tenant(
    catalog: Catalog, identity: Identity, project: str | None, profiles: Sequence[str]
) -> TenantRecord:
    """Return the tenant of a panel that a token administers.

    Args:
        project: id of the project in the application; None stands for the only tenant of the token.

    Raises:
        Forbidden: the token's role is not admin; or no project is named, and the token does not
            cover exactly one tenant.
        UnknownProject: the token covers no project with this id.
        InvalidRequest: the token covers several projects with this id.
    """
    if project is None:
        tenant_id = identity.require_admin_tenant(None)
        try:
            records = [catalog.tenants.get(tenant_id)]
        except UnknownTenant:
            records = []
    else:
        identity.require_admin()
        records = [
            record
            for profile in profiles
            for record in catalog.projects.list_covered(identity.tenants, profile, project)
        ]
    records = [record for record in records if record.config["profile"] in profiles]
    if not records:
        raise UnknownProject(
            "the token covers no project with this id",
            hint="create the project, or use a token that covers it",
        )
    if len(records) > 1:
        raise InvalidRequest(
            "the token covers several projects with this id",
            hint="use a token that covers only one of them",
        )
    return records[0]
