"""Secrets of sessions and codes: random, given once, kept as hashes.

Both are 256 random bits, of which a plain SHA-256 cannot be turned around. The token against forged
requests is derived from a session's secret, so that it needs no store and fits no other session.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from dataclasses import dataclass
from datetime import datetime

from rag_assets.api.identity import Identity
from rag_assets.storage.catalog.catalog import Catalog
from rag_assets.storage.catalog.database import TenantRef
from rag_assets.storage.catalog.panel_sessions import Holder

_BYTES = 32
_PURPOSE = b"requests of the panel's pages"


@dataclass(frozen=True, slots=True)
class Code:
    """A code that begins one session.

    Attributes:
        text: the code; it is nowhere else.
        expires_at: until when it does.
    """

    text: str
    expires_at: datetime


def holder_of(identity: Identity) -> Holder:
    """Whose session one is that begins by this identity's token."""
    principals = identity.caller.principals
    return Holder(identity.name, principals, identity.token_id, identity.expires_at)


def new_code(catalog: Catalog, ref: TenantRef, holder: Holder) -> Code:
    """A new code for one session of a tenant.

    Raises:
        TenantGone: the tenant was removed.
    """
    text = secrets.token_urlsafe(_BYTES)
    return Code(text, catalog.panel_sessions.add_code(ref, hashed(text), holder))


def redeemed(catalog: Catalog, code: str) -> str | None:
    """The secret of the session that a code begins; None: it is used up, expired or unknown."""
    secret = secrets.token_urlsafe(_BYTES)
    return secret if catalog.panel_sessions.redeem(hashed(code), hashed(secret)) else None


def begun(catalog: Catalog, ref: TenantRef, holder: Holder) -> str:
    """The secret of a new session.

    Raises:
        TenantGone: the tenant was removed.
    """
    secret = secrets.token_urlsafe(_BYTES)
    catalog.panel_sessions.begin(ref, hashed(secret), holder)
    return secret


def request_token(secret: str) -> str:
    """What unsafe requests of a session's pages hold."""
    return hmac.new(secret.encode(errors="surrogatepass"), _PURPOSE, hashlib.sha256).hexdigest()


def hashed(secret: str) -> bytes:
    """What is kept of a secret."""
    return hashlib.sha256(secret.encode(errors="surrogatepass")).digest()
