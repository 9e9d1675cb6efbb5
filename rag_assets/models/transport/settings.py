"""The base settings of connections to providers, and checks of addresses and key references."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Final, Literal, TypeAlias
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints

from rag_assets.common.environment import require_variable_reference

if TYPE_CHECKING:
    from pydantic import SecretStr


def normalize_base_url(url: str) -> str:
    """Return a base_url without a trailing slash and with its host in lower case.

    The ValueError for an unusable URL does not quote it, since it may contain a password.
    """
    if not url.isascii() or not url.isprintable() or " " in url or "\\" in url:
        raise ValueError("base_url has characters that are not valid in a URL")
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise ValueError("base_url is not a URL") from None
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise ValueError("base_url must begin with https:// (or http://) and contain a host")
    if "@" in parts.netloc:
        raise ValueError("base_url must not contain a user or a password: set a key as api_key")
    if "?" in url or "#" in url:
        raise ValueError("base_url must not contain a query (?) or a fragment (#)")
    if port == 0:
        raise ValueError("base_url has an invalid port")
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    address = host if port is None else f"{host}:{port}"
    return f"{parts.scheme}://{address}{parts.path.rstrip('/')}"


MAX_URL = 2_000

ModelName: TypeAlias = Annotated[
    str, StringConstraints(pattern=r"^[A-Za-z0-9._:/@-]+$", min_length=1, max_length=200)
]

BaseUrl: TypeAlias = Annotated[str, Field(max_length=MAX_URL), AfterValidator(normalize_base_url)]
"""The URL of a server; its addresses are validated on connection."""


class ConnectionSettings(BaseModel):
    """The settings of connections that are specific to one provider; by default, no settings."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    @property
    def uses_identity(self) -> bool:
        """Return whether requests carry a token of the installation's cloud identity, not a key."""
        return False

    def list_vector_settings(self) -> dict[str, str]:
        """Return the settings that determine a vector, which are part of an embedder's id."""
        return {}


class CloudSettings(ConnectionSettings):
    """The settings of a provider that also accepts a cloud identity.

    Attributes:
        identity: "managed": the cloud identity that this installation runs under, for servers that
            the operator lists in RAG_ASSETS_IDENTITY_HOSTS; None: the tenant's key.
    """

    identity: Literal["managed"] | None = None

    @property
    def uses_identity(self) -> bool:
        """Return whether an identity is configured; see ConnectionSettings."""
        return self.identity is not None


def require_key_reference(setting: str) -> AfterValidator:
    """Return a validator that accepts a key only as the name of an environment variable, $NAME."""

    def check_reference(reference: str) -> str:
        require_variable_reference(setting, reference)
        return reference

    return AfterValidator(check_reference)


Credentials: TypeAlias = "Callable[[], SecretStr]"
"""A function that returns a tenant's key when it is needed.

Raises NoProviderKey if the tenant has no key, and KeyUnreadable if its key cannot be decrypted.
"""

KEY_HEADERS: Final = frozenset({"authorization"})
"""Headers that may carry a key, in lower case; the default for providers."""
