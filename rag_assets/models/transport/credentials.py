"""The key of a request to a provider."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final, TypeAlias

if TYPE_CHECKING:
    from pydantic import SecretStr

Credentials: TypeAlias = "Callable[[], SecretStr]"
"""A function that returns a tenant's key when it is needed.

Raises NoProviderKey if the tenant has no key, and KeyUnreadable if its key cannot be decrypted.
"""

KEY_HEADERS: Final = frozenset({"authorization"})
"""Headers that may carry a key, in lower case; the default for providers."""
