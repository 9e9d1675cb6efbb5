"""Provider keys as the catalog keeps them: encrypted, and good for one tenant and provider only."""

from __future__ import annotations

import json
import os

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from pydantic import SecretStr

from rag_assets.billing.master_key import MasterKey
from rag_assets.common.errors import KeyUnreadable
from rag_assets.storage.catalog.database import TenantRef
from rag_assets.storage.catalog.provider_keys import Sealed

_NONCE_BYTES = 12  # NIST SP 800-38D, 8.2.2: random, so far fewer than 2^32 keys per master key


def seal(master: MasterKey, ref: TenantRef, provider: str, secret: SecretStr) -> Sealed:
    """Encrypt a provider key.

    Args:
        master: encrypts it.
        ref: whose it is; a row that is moved to another tenant does not decrypt.
        provider: what it is for; likewise.
        secret: the key.
    """
    nonce = os.urandom(_NONCE_BYTES)
    plain = secret.get_secret_value().encode()
    ciphertext = AESGCM(master.secret).encrypt(nonce, plain, _bound(ref, provider))
    return Sealed(nonce, ciphertext, master.id)


def unseal(master: MasterKey, ref: TenantRef, provider: str, sealed: Sealed) -> SecretStr:
    """Decrypt a provider key.

    Raises:
        KeyUnreadable: it was altered, or sealed by another key or for somebody else.
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
    """What is authenticated beside the key; as JSON, so that no two lists of parts are equal."""
    return json.dumps(["rag-assets provider key", 1, ref.id, ref.incarnation, provider]).encode()
