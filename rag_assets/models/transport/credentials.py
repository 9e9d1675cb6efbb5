"""The key of a request to a provider."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from pydantic import SecretStr

Credentials: TypeAlias = "Callable[[], SecretStr]"
"""Gives a tenant's key when it is needed.

Raises NoProviderKey if there is none, KeyUnreadable if there is one that does not decrypt.
"""
