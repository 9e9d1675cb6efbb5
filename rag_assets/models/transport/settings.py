"""Types of settings that models of every kind share."""

from __future__ import annotations

from typing import Annotated, TypeAlias

from pydantic import AfterValidator, Field, StringConstraints

from rag_assets.common.references import require_reference
from rag_assets.models.transport.addresses import normal_base_url

MAX_URL = 2_000

ModelName: TypeAlias = Annotated[
    str, StringConstraints(pattern=r"^[A-Za-z0-9._:/@-]+$", min_length=1, max_length=200)
]

BaseUrl: TypeAlias = Annotated[str, Field(max_length=MAX_URL), AfterValidator(normal_base_url)]
"""The URL of a server; its addresses are validated on connection."""


def key_reference(setting: str) -> AfterValidator:
    """Refuse a key that is not given as $NAME of an environment variable.

    Args:
        setting: its name, for messages.
    """

    def checked(reference: str) -> str:
        require_reference(setting, reference)
        return reference

    return AfterValidator(checked)
