"""Encryption of provider keys, bound to one tenant and provider."""

from __future__ import annotations

import json
import os

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from pydantic import SecretStr

from rag_assets.billing.master_key import MasterKey
from rag_assets.common.errors import KeyUnreadable
from rag_assets.storage.catalog.database import TenantRef
from rag_assets.storage.catalog.provider_keys import SealedKey

_NONCE_BYTES = 12  # NIST SP 800-38D, 8.2.2: random, so far fewer than 2^32 keys per master key


def seal(master: MasterKey, ref: TenantRef, provider: str, secret: SecretStr) -> SealedKey:
    """Encrypt a provider key.

    Args:
        master: encrypts it.
        ref: of the tenant; a row that is moved to another tenant does not decrypt.
        provider: whose key it is; likewise.
        secret: the key.
    """
    nonce = os.urandom(_NONCE_BYTES)
    plain = secret.get_secret_value().encode()
    ciphertext = AESGCM(master.secret).encrypt(nonce, plain, _bound(ref, provider))
    return SealedKey(nonce, ciphertext, master.id)


def unseal(master: MasterKey, ref: TenantRef, provider: str, sealed: SealedKey) -> SecretStr:
    """Decrypt a provider key.

    Raises:
        KeyUnreadable: it was altered, or encrypted with another key or for another tenant.
    """
    bound = _bound(ref, provider)
    try:
        plain = AESGCM(master.secret).decrypt(sealed.nonce, sealed.ciphertext, bound)
    except (InvalidTag, ValueError):
        raise KeyUnreadable(
            f"the stored key of tenant {ref.id!r} for {provider} is damaged",
            hint=f"set it again: rag-assets keys set {ref.id} {provider}",
        ) from None
    return SecretStr(plain.decode())


def _bound(ref: TenantRef, provider: str) -> bytes:
    """The associated data; as JSON, so that different parts never give equal bytes."""
    return json.dumps(["rag-assets provider key", 1, ref.id, ref.incarnation, provider]).encode()
