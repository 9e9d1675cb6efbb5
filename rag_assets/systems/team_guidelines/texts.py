"""Plain texts of projects, for prompts for which no passage of a document was found."""

from __future__ import annotations

import hashlib
from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from sqlalchemy import Row, select, update
from sqlalchemy.dialects.postgresql import insert as upsert
from sqlalchemy.sql import func

from rag_assets.api.guideline_responses import GuidelinesText
from rag_assets.common.errors import ServiceUnavailable, VersionChanged
from rag_assets.privacy.masker import Masker
from rag_assets.storage.catalog.database import Database, TenantRef
from rag_assets.systems.team_guidelines.errors import TextRefused, VersionMissing
from rag_assets.systems.team_guidelines.tables import guideline_texts

MAX_CHARACTERS = 100_000

ANY_VERSION: Final = "*"
"""Matches the present version, whatever it is."""

_VERSION_DIGITS = 32
_MAX_FINDINGS = 20


@dataclass(frozen=True, slots=True)
class GuidelineText:
    """The plain text of a project.

    Attributes:
        updated_by: name of the last author.
        updated_at: time of the last change.
    """

    text: str
    updated_by: str
    updated_at: datetime

    @property
    def version(self) -> str:
        """Return a hash of the text and its time, so that every change creates a new version."""
        content = f"{self.updated_at.isoformat()}\n{self.text}"
        return hashlib.sha256(content.encode()).hexdigest()[:_VERSION_DIGITS]

    @property
    def is_blank(self) -> bool:
        """Return whether the text is empty or only white space."""
        return not self.text.strip()


def build_response(text: GuidelineText | None) -> GuidelinesText:
    """Build the response about a project's text, with its ETag."""
    if text is None:
        return GuidelinesText(text="", updated_by=None, updated_at=None)
    return GuidelinesText(
        text=text.text,
        updated_by=text.updated_by,
        updated_at=text.updated_at,
        etag=f'"{text.version}"',
    )


class GuidelineTexts:
    """Reads and sets plain texts."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def get(self, tenant_id: str) -> GuidelineText | None:
        """Return the text of a project's tenant; None if it was never set."""
        query = select(guideline_texts).where(guideline_texts.c.tenant == tenant_id)
        with self._database.begin() as connection:
            row = connection.execute(query).first()
        return None if row is None else _text_from_row(row)

    def put(
        self,
        ref: TenantRef,
        text: str,
        *,
        by: str,
        replaces: Collection[str] | None,
    ) -> GuidelineText:
        """Set a text that is usable (see require_usable); setting the same text has no effect.

        Args:
            ref: reference of the project's tenant.
            text: the new text; an empty text removes it.
            by: name of the caller.
            replaces: versions that the text may replace; ANY_VERSION allows any; None allows only
                that no text was stored.

        Raises:
            VersionMissing: a text exists, and `replaces` is None.
            VersionChanged: the present version is not in `replaces`.
            TenantGone: the tenant was removed.
        """
        columns = guideline_texts.c
        values = {"text": text, "updated_by": by, "updated_at": func.clock_timestamp()}
        with self._database.begin_for(ref) as connection:
            present = select(guideline_texts).where(columns.tenant == ref.id).with_for_update()
            row = connection.execute(present).first()
            if row is None:
                if replaces is not None:
                    raise _version_changed_error()
                new = upsert(guideline_texts).values(tenant=ref.id, **values)
                statement = new.on_conflict_do_nothing().returning(guideline_texts)
                row = connection.execute(statement).first()
                if row is None:
                    raise _version_changed_error()
                return _text_from_row(row)
            stored = _text_from_row(row)
            _require_replaceable(stored, replaces)
            if stored.text == text:
                return stored
            change = update(guideline_texts).where(columns.tenant == ref.id).values(**values)
            return _text_from_row(connection.execute(change.returning(guideline_texts)).one())


def require_usable(text: str, masker: Masker) -> None:
    """Require that a text can be stored and sent to models; checking a long text takes a while.

    Args:
        masker: finds credentials.

    Raises:
        TextRefused: the text is too long, or contains invalid characters or a credential.
        ServiceUnavailable: the scan for credentials took too long.
    """
    if len(text) > MAX_CHARACTERS:
        raise TextRefused(
            (f"it has {len(text):,} characters, but at most {MAX_CHARACTERS:,} are allowed",)
        )
    if "\x00" in text or any("\ud800" <= character <= "\udfff" for character in text):
        raise TextRefused(("it contains a NUL character or an unpaired surrogate",))
    try:
        findings = masker.findings(text)
    except TimeoutError:
        raise ServiceUnavailable(
            "the text could not be scanned for credentials in time", hint="try again in a moment"
        ) from None
    if findings:
        raise TextRefused(
            tuple(
                f"line {finding.line}: a credential (rule {finding.rule})"
                for finding in findings[:_MAX_FINDINGS]
            )
        )


def _text_from_row(row: Row[Any]) -> GuidelineText:
    return GuidelineText(row.text, row.updated_by, row.updated_at)


def _require_replaceable(present: GuidelineText, replaces: Collection[str] | None) -> None:
    if replaces is None:
        raise VersionMissing(
            "a text already exists", hint="read the text, and send its version with the new text"
        )
    if not {ANY_VERSION, present.version} & set(replaces):
        raise _version_changed_error()


def _version_changed_error() -> VersionChanged:
    return VersionChanged(
        "the text has changed since you read it",
        hint="read the text again, and apply your change to the new version",
    )
