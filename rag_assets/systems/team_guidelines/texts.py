"""Plain texts of projects, for prompts that no document has anything for."""

from __future__ import annotations

import hashlib
from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from sqlalchemy import Row, select, update
from sqlalchemy.dialects.postgresql import insert as upsert
from sqlalchemy.sql import func

from rag_assets.common.errors import (
    ServiceUnavailable,
    TextRefused,
    VersionChanged,
    VersionMissing,
)
from rag_assets.privacy.masker import Masker
from rag_assets.storage.catalog.database import Database, TenantRef
from rag_assets.systems.team_guidelines.tables import guideline_texts

MAX_TEXT = 100_000
"""Characters of a text."""

ANY_VERSION: Final = "*"
"""Stands for whatever version there is."""

_VERSION = 32
_MOST_NAMED = 20


@dataclass(frozen=True, slots=True)
class GuidelineText:
    """The plain text of a project.

    Attributes:
        updated_by: name of the caller who set it.
        updated_at: when it was set.
    """

    text: str
    updated_by: str
    updated_at: datetime

    @property
    def version(self) -> str:
        """A name of this text and its time, which any change changes."""
        content = f"{self.updated_at.isoformat()}\n{self.text}"
        return hashlib.sha256(content.encode()).hexdigest()[:_VERSION]

    @property
    def is_blank(self) -> bool:
        """Whether there is nothing to read in it."""
        return not self.text.strip()


class GuidelineTexts:
    """Reads and sets plain texts.

    Args:
        database: that holds the catalog.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    def get(self, tenant_id: str) -> GuidelineText | None:
        """The text of a project's tenant; None if none was set."""
        query = select(guideline_texts).where(guideline_texts.c.tenant == tenant_id)
        with self._database.begin() as connection:
            row = connection.execute(query).first()
        return None if row is None else _text(row)

    def put(
        self,
        ref: TenantRef,
        text: str,
        *,
        by: str,
        replaces: Collection[str] | None,
    ) -> GuidelineText:
        """Set a text that is usable (see require_usable); the same again changes nothing.

        Args:
            ref: the project's tenant.
            text: empty for none.
            by: name of the caller.
            replaces: versions that it may replace, ANY_VERSION for any; None: there must be none.

        Raises:
            VersionMissing: there is a text, and no version of it was named.
            VersionChanged: the present text is another one than those that were named.
            TenantGone: the tenant was removed.
        """
        columns = guideline_texts.c
        values = {"text": text, "updated_by": by, "updated_at": func.clock_timestamp()}
        with self._database.begin_for(ref) as connection:
            present = select(guideline_texts).where(columns.tenant == ref.id).with_for_update()
            row = connection.execute(present).first()
            if row is None:
                _require_none(replaces)
                new = upsert(guideline_texts).values(tenant=ref.id, **values)
                statement = new.on_conflict_do_nothing().returning(guideline_texts)
                row = connection.execute(statement).first()
                if row is None:
                    raise _changed()
                return _text(row)
            kept = _text(row)
            _require_replaceable(kept, replaces)
            if kept.text == text:
                return kept
            change = update(guideline_texts).where(columns.tenant == ref.id).values(**values)
            return _text(connection.execute(change.returning(guideline_texts)).one())


def require_usable(text: str, masker: Masker) -> None:
    """Require that a text may be kept, and sent to models.

    Args:
        text: to be kept.
        masker: finds credentials; that takes a while for a long text.

    Raises:
        TextRefused: it is too long, holds what cannot be stored, or a credential.
        ServiceUnavailable: it could not be scanned in time.
    """
    if len(text) > MAX_TEXT:
        raise TextRefused((f"it has {len(text):,} characters, and {MAX_TEXT:,} are allowed",))
    if "\x00" in text or any("\ud800" <= character <= "\udfff" for character in text):
        raise TextRefused(("it holds a zero byte, or half of a character",))
    try:
        findings = masker.findings(text)
    except TimeoutError:
        raise ServiceUnavailable(
            "the text could not be scanned for credentials in time", hint="try again in a moment"
        ) from None
    if findings:
        raise TextRefused(
            tuple(
                f"line {found.line}: a credential (rule {found.rule})"
                for found in findings[:_MOST_NAMED]
            )
        )


def _text(row: Row[Any]) -> GuidelineText:
    return GuidelineText(row.text, row.updated_by, row.updated_at)


def _require_none(replaces: Collection[str] | None) -> None:
    if replaces is not None:
        raise _changed()


def _require_replaceable(present: GuidelineText, replaces: Collection[str] | None) -> None:
    if replaces is None:
        raise VersionMissing(
            "there is a text already", hint="read it, and name its version with the new one"
        )
    if not {ANY_VERSION, present.version} & set(replaces):
        raise _changed()


def _changed() -> VersionChanged:
    return VersionChanged(
        "the text was changed meanwhile", hint="read it again, and make the change in that"
    )
