"""The key of a request to a provider."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final, TypeAlias

if TYPE_CHECKING:
    from pydantic import SecretStr

Credentials: TypeAlias = "Callable[[], SecretStr]"
"""Returns a tenant's key when it is needed.

Raises NoProviderKey if the tenant has none, KeyUnreadable if its key cannot be decrypted.
"""

KEY_HEADERS: Final = frozenset({"authorization"})
"""Headers that carry a key, in lower case; the default for providers."""
