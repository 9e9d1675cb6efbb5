"""Master keys, which encrypt the provider keys in the catalog."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import os
from collections.abc import Mapping
from dataclasses import dataclass, field

from rag_assets.common.errors import ConfigurationError

VARIABLE = "RAG_ASSETS_MASTER_KEY"
PREVIOUS = "RAG_ASSETS_MASTER_KEY_PREVIOUS"
_KEY_BYTES = 32
_HINT = "it must be 32 random bytes as base64; create one with `openssl rand -base64 32`"


@dataclass(frozen=True, slots=True)
class MasterKey:
    """A master key.

    Attributes:
        id: names the key in the catalog without revealing any of it.
        secret: 32 bytes.
    """

    id: str
    secret: bytes = field(repr=False)

    @classmethod
    def of(cls, secret: bytes) -> MasterKey:
        """Return the key with these bytes."""
        digest = hmac.new(secret, b"rag-assets: id of a master key", hashlib.sha256)
        return cls(digest.hexdigest()[:16], secret)

    @classmethod
    def random(cls) -> MasterKey:
        """Return a new key."""
        return cls.of(os.urandom(_KEY_BYTES))

    @classmethod
    def parse(cls, text: str, where: str) -> MasterKey:
        """Read a key from a variable or a line of a file.

        Raises:
            ConfigurationError: the text is not base64 of 32 bytes; the message names the place
                without quoting the value.
        """
        try:
            secret = base64.b64decode(text.strip(), validate=True)
        except (binascii.Error, ValueError):
            secret = b""
        if len(secret) != _KEY_BYTES:
            raise ConfigurationError(f"{where} holds no master key", hint=_HINT)
        return cls.of(secret)

    def text(self) -> str:
        """Return the key as a file holds it."""
        return base64.b64encode(self.secret).decode()


@dataclass(frozen=True, slots=True)
class MasterKeys:
    """The master keys of an installation.

    Attributes:
        present: encrypts provider keys.
        former: decrypt keys that were encrypted earlier, until a rotation is complete.
    """

    present: MasterKey
    former: tuple[MasterKey, ...] = ()

    def find(self, key_id: str) -> MasterKey | None:
        """Return the key with that id; None if it is missing."""
        return next((key for key in (self.present, *self.former) if key.id == key_id), None)


def keys_of_environment(environ: Mapping[str, str]) -> MasterKeys | None:
    """Return the keys in the environment; None if there are none, so that the file is used.

    Raises:
        ConfigurationError: a variable does not hold a key.
    """
    present, previous = environ.get(VARIABLE), environ.get(PREVIOUS)
    if not present:
        if previous:
            raise ConfigurationError(
                f"{PREVIOUS} is set without {VARIABLE}",
                hint=f"set {VARIABLE} to the key that encrypts provider keys from now on",
            )
        return None
    former = (MasterKey.parse(previous, PREVIOUS),) if previous else ()
    return MasterKeys(MasterKey.parse(present, VARIABLE), former)
