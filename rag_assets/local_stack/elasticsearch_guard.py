"""Password protection of the embedded Elasticsearch: two accounts, and a plugin in Java.

The published jars have no security module. The classes in `guard/` check the headers before any
other processing, and open no port between nodes. `guard_build.py` compiles them when the server is
set up.
"""

from __future__ import annotations

import base64
import hashlib
import json
import secrets
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Self

from rag_assets.common.private_files import write_atomically
from rag_assets.local_stack.net import LOOPBACK

PLUGIN_CLASS = "ragassets.guard.GuardedNetworkPlugin"
OWNER = "owner"
SEARCHER = "searcher"

_ACCOUNTS = "http-guard.properties"
_SECRET_BYTES = 32


@dataclass(frozen=True, slots=True)
class Access:
    """Port and passwords of an installation's server; they stay the same across restarts.

    Attributes:
        port: port on the loopback interface.
        owner: password of the account with all permissions.
        searcher: password of the account that may only search tenants' aliases.
    """

    port: int
    owner: str = field(repr=False)
    searcher: str = field(repr=False)

    @classmethod
    def new(cls, port: int) -> Self:
        """Create an access with new passwords."""
        return cls(port, secrets.token_hex(_SECRET_BYTES), secrets.token_hex(_SECRET_BYTES))

    @classmethod
    def load(cls, path: Path) -> Self | None:
        """Load a file written by `save`; None if it is missing or unusable."""
        try:
            access = cls(**json.loads(path.read_text()))
        except (OSError, ValueError, TypeError):
            return None
        complete = access.owner and access.searcher and isinstance(access.port, int)
        return access if complete else None

    def save(self, path: Path) -> None:
        """Save the port and the passwords to a file that only its owner can read."""
        write_atomically(path, json.dumps(asdict(self)))

    def url(self, account: str = OWNER) -> str:
        """Return the server's address with an account's name and password."""
        password = self.owner if account == OWNER else self.searcher
        return f"http://{account}:{password}@{LOOPBACK}:{self.port}"

    def header(self, account: str = OWNER) -> str:
        """Return the Authorization header of an account."""
        password = self.owner if account == OWNER else self.searcher
        return "Basic " + base64.b64encode(f"{account}:{password}".encode()).decode()


def write_accounts(home: Path, access: Access) -> None:
    """Write the accounts for the server as digests, without passwords."""
    lines = [
        f"{account}={hashlib.sha256(access.header(account).encode()).hexdigest()}\n"
        for account in (OWNER, SEARCHER)
    ]
    write_atomically(home / "config" / _ACCOUNTS, "".join(lines))
