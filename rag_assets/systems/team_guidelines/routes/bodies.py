"""Bodies of requests below /api, in camelCase."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, SecretStr

from rag_assets.models.transport.settings import ModelName
from rag_assets.storage.catalog.upload_states import UploadStatus
from rag_assets.systems.team_guidelines.camel import camel
from rag_assets.systems.team_guidelines.library import CURSOR
from rag_assets.tenants.model import CapsConfig
from rag_assets.tenants.projects import MAX_NAME, AutoProvider, ProjectSettings

_LINE = r"^[^\x00-\x1f\x7f-\x9f]+$"
_KEY = "^[!-#%-~][!-~]*$"
"""As require_key has it."""

_CAMEL = ConfigDict(alias_generator=camel, extra="forbid", frozen=True)


class CapsBody(CapsConfig):
    """Spending caps of a project, in dollars; searches and answers count too."""

    model_config = _CAMEL


class ProjectBody(ProjectSettings):
    """Settings of a project.

    What is not given stays as it is; null stands for what projects begin with.
    """

    model_config = _CAMEL

    name: Annotated[str, Field(pattern=_LINE, max_length=MAX_NAME)] | None = None
    provider: AutoProvider | None = None
    min_score: Annotated[float, Field(ge=-1, le=1, allow_inf_nan=False)] | None = None
    caps: CapsBody | None = None

    @property
    def given(self) -> dict[str, Any]:
        """The settings that are given, as ProjectSettings names them."""
        return self.model_dump(exclude_unset=True)


class OrganizationBody(BaseModel):
    """Settings of an organization; what is not given stays as it is.

    Attributes:
        rag_guidelines: whether documents of its projects are embedded, and searched.
        chat_model: of its projects that have none of their own; null: none.
    """

    model_config = _CAMEL

    rag_guidelines: Annotated[bool, Field(strict=True)] = False
    chat_model: ModelName | None = None


class KeyBody(BaseModel):
    """A provider's key."""

    model_config = _CAMEL

    key: Annotated[
        SecretStr, Field(min_length=1, max_length=4_096, json_schema_extra={"pattern": _KEY})
    ]


class EnabledBody(BaseModel):
    """Whether a document may answer."""

    model_config = _CAMEL

    enabled: Annotated[bool, Field(strict=True)]


class DocumentQuery(BaseModel):
    """Which documents are listed.

    Attributes:
        status: only these.
        after: the `next` of the page before.
        limit: documents at most.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    status: UploadStatus | None = None
    after: Annotated[str, Field(pattern=CURSOR)] | None = None
    limit: int = Field(default=100, ge=1, le=1_000)


class UsageQuery(BaseModel):
    """How many days of usage are told, today included."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    days: int = Field(default=30, ge=1, le=366)
