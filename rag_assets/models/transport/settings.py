"""Types of settings that models of every kind share."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints

from rag_assets.common.references import require_reference
from rag_assets.models.transport.addresses import normal_base_url

MAX_URL = 2_000

ModelName: TypeAlias = Annotated[
    str, StringConstraints(pattern=r"^[A-Za-z0-9._:/@-]+$", min_length=1, max_length=200)
]

BaseUrl: TypeAlias = Annotated[str, Field(max_length=MAX_URL), AfterValidator(normal_base_url)]
"""The URL of a server; its addresses are validated on connection."""


class ConnectionSettings(BaseModel):
    """Settings of connections that are specific to one provider; by default there are none."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    @property
    def uses_identity(self) -> bool:
        """Return whether requests carry a token of the installation's cloud identity, not a key."""
        return False

    def recipe(self) -> dict[str, str]:
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


def key_reference(setting: str) -> AfterValidator:
    """Return a validator that refuses a key unless it is $NAME of an environment variable.

    Args:
        setting: name of the setting, for messages.
    """

    def checked(reference: str) -> str:
        require_reference(setting, reference)
        return reference

    return AfterValidator(checked)
