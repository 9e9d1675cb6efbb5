"""Encryption of provider keys, bound to their owner and provider."""

from __future__ import annotations

import json
import os

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from pydantic import SecretStr

from rag_assets.billing.key_owners import describe_owner, set_command
from rag_assets.billing.master_key import MasterKey
from rag_assets.common.errors import KeyUnreadable
from rag_assets.storage.catalog.accounts.provider_keys import KeyOwner, SealedKey
from rag_assets.storage.catalog.tenants.organizations import OrganizationRef

_NONCE_BYTES = 12  # NIST SP 800-38D, 8.2.2: random, so keep far below 2^32 keys per master key


def seal(master: MasterKey, owner: KeyOwner, provider: str, secret: SecretStr) -> SealedKey:
    """Encrypt a provider key.

    Args:
        master: the master key that encrypts the provider key.
        owner: the key's owner; a row that is moved to a different owner cannot be decrypted.
        provider: the key's provider; a row that is moved to a different one cannot be decrypted.
        secret: the key.
    """
    nonce = os.urandom(_NONCE_BYTES)
    plain = secret.get_secret_value().encode()
    ciphertext = AESGCM(master.secret).encrypt(nonce, plain, _encode_owner(owner, provider))
    return SealedKey(nonce, ciphertext, master.id)


def unseal(master: MasterKey, owner: KeyOwner, provider: str, sealed: SealedKey) -> SecretStr:
    """Decrypt a provider key.

    Raises:
        KeyUnreadable: the stored key was altered, or encrypted with a different master key or for
            a different owner.
    """
    bound = _encode_owner(owner, provider)
    try:
        plain = AESGCM(master.secret).decrypt(sealed.nonce, sealed.ciphertext, bound)
    except (InvalidTag, ValueError):
        raise KeyUnreadable(
            f"the stored key of {describe_owner(owner)} for {provider} is damaged",
            hint=f"set the key again: {set_command(owner, provider)}",
        ) from None
    return SecretStr(plain.decode())


def _encode_owner(owner: KeyOwner, provider: str) -> bytes:
    """Return owner and provider as JSON; no two pairs of them give equal bytes."""
    if isinstance(owner, OrganizationRef):
        parts: list[object] = ["rag-assets key of an organization", 1, owner.id, provider]
    else:
        parts = ["rag-assets provider key", 1, owner.id, owner.incarnation, provider]
    return json.dumps(parts).encode()
