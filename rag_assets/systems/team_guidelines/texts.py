"""Plain texts of projects, and the rules in the front matter of their documents.

A prompt gets the plain text if the search finds no passage of a document. A rule adds its document
to the search results of a task:

    ---
    always: true                    applies to every task
    paths: ["tests/**", "*.spec.ts"]        applies to tasks about files that match a glob
    ---

A sync stores the rules of published Markdown documents in `guideline_rules`. A context includes
all passages of the documents whose rules apply to its task.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError
from sqlalchemy import Row, Select, and_, select, update
from sqlalchemy.dialects.postgresql import insert as upsert
from sqlalchemy.sql import func

from rag_assets.api.guideline_responses import GuidelinesText, RuleKind
from rag_assets.common.errors import RagAssetsError, ServiceUnavailable, VersionChanged
from rag_assets.ingest.chunking.model import Location, get_location_fields
from rag_assets.ingest.parsing.media_types import MARKDOWN
from rag_assets.ingest.parsing.model import ParsedText
from rag_assets.ingest.sources.globs import compile_globs
from rag_assets.pipeline.context import TenantContext
from rag_assets.privacy.masker import Masker
from rag_assets.search.access import DocumentReader
from rag_assets.search.model import Caller, Hit
from rag_assets.storage.catalog.builds.generations import Generation
from rag_assets.storage.catalog.catalog import Catalog
from rag_assets.storage.catalog.database import CatalogQueries, TenantRef
from rag_assets.storage.catalog.tables import document_index, serving
from rag_assets.storage.catalog.uploads.model import uploads
from rag_assets.storage.index.model import StoredEntry
from rag_assets.systems.team_guidelines.errors import TextRefused, VersionMissing
from rag_assets.systems.team_guidelines.tables import guideline_rules, guideline_texts

MAX_CHARACTERS = 100_000

ANY_VERSION: Final = "*"
"""Matches every current version."""

_VERSION_DIGITS = 32
_MAX_FINDINGS = 20


@dataclass(frozen=True, slots=True)
class GuidelineText:
    """The plain text of a project."""

    text: str
    updated_by: str
    updated_at: datetime

    @property
    def version(self) -> str:
        """Return a hash of the text and the time of its last change."""
        content = f"{self.updated_at.isoformat()}\n{self.text}"
        return hashlib.sha256(content.encode()).hexdigest()[:_VERSION_DIGITS]

    @property
    def is_blank(self) -> bool:
        """Return whether the text is empty or only white space."""
        return not self.text.strip()


def build_text_response(text: GuidelineText | None) -> GuidelinesText:
    """Return the API's response with a project's text and ETag; an empty text if it is None."""
    if text is None:
        return GuidelinesText(text="", updated_by=None, updated_at=None)
    return GuidelinesText(
        text=text.text,
        updated_by=text.updated_by,
        updated_at=text.updated_at,
        etag=f'"{text.version}"',
    )


class GuidelineTexts(CatalogQueries):
    """Reads and sets the plain texts of projects."""

    def get(self, tenant_id: str) -> GuidelineText | None:
        """Return the text of a project's tenant; None if it was never set."""
        query = select(guideline_texts).where(guideline_texts.c.tenant == tenant_id)
        row = self._database.fetch_row(query)
        return None if row is None else _text_from_row(row)

    def put(
        self,
        ref: TenantRef,
        text: str,
        *,
        by: str,
        replaces: Collection[str] | None,
    ) -> GuidelineText:
        """Set a text that passed require_usable(); setting the same text has no effect.

        Args:
            replaces: versions that the text may replace, or ANY_VERSION; None if no text may be
                stored yet.

        Raises:
            VersionMissing: a text exists, and `replaces` is None.
            VersionChanged: the current version is not in `replaces`.
            TenantGone: the tenant was removed.
        """
        columns = guideline_texts.c
        values = {"text": text, "updated_by": by, "updated_at": func.clock_timestamp()}
        with self._database.begin_tenant(ref) as connection:
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
            _require_current_version(stored, replaces)
            if stored.text == text:
                return stored
            change = update(guideline_texts).where(columns.tenant == ref.id).values(**values)
            return _text_from_row(connection.execute(change.returning(guideline_texts)).one())


def require_usable(text: str, masker: Masker) -> None:
    """Require that a text can be stored and sent to models; slow for long texts.

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
        findings = masker.find_credentials(text)
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


def _require_current_version(present: GuidelineText, replaces: Collection[str] | None) -> None:
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


MAX_PATHS = 100
"""Maximum number of globs of one document, and of files of a task."""
_MAX_PATH_CHARACTERS = 500
_FENCE = re.compile(r"\A---[ \t]*\r?\n(?P<yaml>.*?)\r?\n---[ \t]*(?:\r?\n|\Z)", re.DOTALL)
_PATH_IN_TEXT = re.compile(r"(?<![\w@:/.])(?:[\w.-]+/)*[\w-]+(?:\.[\w-]+)*\.[A-Za-z]\w{0,9}\b(?!/)")


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule in a document's front matter: to which tasks the document is added.

    A rule with the default values adds the document to no task.

    Attributes:
        is_always: whether the document is added to every task.
        paths: globs; the document is added to tasks about a matching file.
    """

    is_always: bool = False
    paths: tuple[str, ...] = ()


class RuleFollowUp:
    """Stores the rules of published documents at the end of a sync (see FollowUp)."""

    def unfinished(self, catalog: Catalog, tenant_id: str) -> str | None:
        """Return why a tenant needs a run although no source changed; None if it needs none."""
        with catalog.database.begin() as connection:
            has_unread = connection.scalar(select(_select_unread_documents(tenant_id).exists()))
        return "the front matter of some documents has not been read yet" if has_unread else None

    def kept_texts(self, catalog: Catalog, tenant_id: str) -> frozenset[str]:
        """Return an empty set: rules have no vectors."""
        return frozenset()

    def finish(self, ctx: TenantContext, serving: Generation) -> Mapping[str, Any]:
        """Store the rules of published documents; return their number as run metadata."""
        with ctx.catalog.database.begin() as connection:
            documents = connection.execute(_select_unread_documents(ctx.ref.id)).all()
        if not documents:
            return {}
        parsed = ctx.lake.parsed({document.parse_key for document in documents})
        ctx.guard()
        count = 0
        with ctx.catalog.database.begin_exclusive(ctx.ref) as connection:
            for document in documents:
                text = parsed.get(document.parse_key)
                rule = Rule() if text is None else parse_rule(text.parsed)
                values = {
                    "tenant": ctx.ref.id,
                    "document_id": document.document_id,
                    "parse_key": document.parse_key,
                    "is_always": rule.is_always,
                    "paths": "\n".join(rule.paths),
                }
                upload = select(uploads.c.document_id).where(
                    uploads.c.tenant == ctx.ref.id, uploads.c.document_id == document.document_id
                )
                if connection.scalar(upload.with_for_update()) is None:
                    continue  # deleted meanwhile
                put = upsert(guideline_rules).values(values)
                key = ["tenant", "document_id"]
                connection.execute(put.on_conflict_do_update(index_elements=key, set_=values))
                count += rule != Rule()
        return {"rules read": count}


FOLLOW_UP = RuleFollowUp()


def parse_rule(parsed: ParsedText) -> Rule:
    """Return the rule in a document's front matter; an empty rule if it is malformed."""
    fence = _FENCE.match(parsed.text.removeprefix("\ufeff"))
    if fence is None:
        return Rule()
    try:
        front = YAML(typ="safe").load(fence["yaml"])
    except (YAMLError, ValueError, RecursionError):
        return Rule()
    if not isinstance(front, Mapping):
        return Rule()
    return Rule(front.get("always") is True, tuple(_parse_globs(front.get("paths"))))


def _parse_globs(value: Any) -> Iterable[str]:
    values = value.split(",") if isinstance(value, str) else value
    if not isinstance(values, list):
        return
    for glob in values[:MAX_PATHS]:
        text = glob.strip() if isinstance(glob, str) else ""
        if text and len(text) <= _MAX_PATH_CHARACTERS and text.isprintable():
            yield text


def find_files(task: str, paths: Sequence[str]) -> tuple[str, ...]:
    """Return the files of a task: these paths, then the paths in its text."""
    paths_in_text = [match[0] for match in _PATH_IN_TEXT.finditer(task)]
    return tuple(dict.fromkeys([*paths, *paths_in_text]))[:MAX_PATHS]


def matches_any_file(globs: Sequence[str], files: Sequence[str]) -> bool:
    """Return whether any glob matches a file or a folder that contains the file.

    Invalid globs are ignored.
    """
    usable = []
    for glob in globs:
        try:
            usable.append(compile_globs([glob], ignore_case=False))
        except ValueError:
            continue
    return any(
        rules.decide(folder, name, is_folder=is_folder) is True
        for file in files
        for folder, name, is_folder in _split_path(file)
        for rules in usable
    )


def _split_path(file: str) -> Iterator[tuple[bytes, bytes, bool]]:
    """Yield the arguments of Rules.decide() for a file and for each folder that contains it."""
    parts = [part for part in file.encode(errors="replace").split(b"/") if part not in {b"", b"."}]
    for at, name in enumerate(parts):
        folder = b"".join(part + b"/" for part in parts[:at])
        yield folder, name, at < len(parts) - 1


def read_rule_hits(
    reader: DocumentReader, tenant_id: str, caller: Caller, files: Sequence[str]
) -> list[tuple[Hit, RuleKind]]:
    """Return the passages of documents whose rules apply to these files or to every task.

    Rules for every task come first. Documents that the caller may not read are left out.
    """
    kinds = _find_rules(reader.catalog, tenant_id, files)
    if not kinds:
        return []
    try:
        documents = reader.read_entries_of(tenant_id, caller, [*kinds])
    except RagAssetsError:
        return []  # the search will report the failure
    return [
        (_build_hit(entry), kind)
        for document_id, kind in kinds.items()
        for entry in documents.get(document_id, ())
    ]


def _find_rules(catalog: Catalog, tenant_id: str, files: Sequence[str]) -> dict[str, RuleKind]:
    """Return the kinds of the applicable rules by document id, ordered by kind and file name."""
    rule = guideline_rules.c
    query = (
        select(rule.document_id, rule.is_always, rule.paths)
        .join(
            uploads,
            and_(uploads.c.tenant == rule.tenant, uploads.c.document_id == rule.document_id),
        )
        .where(rule.tenant == tenant_id, uploads.c.enabled, rule.is_always | (rule.paths != ""))
        .order_by(rule.is_always.desc(), uploads.c.file_name, rule.document_id)
    )
    with catalog.database.begin() as connection:
        rows = connection.execute(query).all()
    return {
        row.document_id: "always" if row.is_always else "path"
        for row in rows
        if row.is_always or matches_any_file(row.paths.split("\n"), files)
    }


def _select_unread_documents(tenant_id: str) -> Select[Any]:
    """Return the query for served Markdown documents whose front matter has not been read."""
    served, rule = document_index.c, guideline_rules.c
    return (
        select(served.document_id, served.parse_key)
        .join(
            serving,
            and_(serving.c.tenant == served.tenant, serving.c.generation == served.generation),
        )
        .join(
            uploads,
            and_(uploads.c.tenant == served.tenant, uploads.c.document_id == served.document_id),
        )
        .outerjoin(
            guideline_rules,
            and_(rule.tenant == served.tenant, rule.document_id == served.document_id),
        )
        .where(
            served.tenant == tenant_id,
            served.indexed_key.is_not(None),
            served.parse_key.is_not(None),
            uploads.c.media_type == MARKDOWN,
            rule.parse_key.is_distinct_from(served.parse_key),
        )
    )


def _build_hit(entry: StoredEntry) -> Hit:
    fields = entry.fields
    return Hit(
        number=0,
        ordinal=fields["ordinal"],
        score=None,
        text=fields["text"],
        excerpt="",
        uri=fields["uri"],
        title=fields.get("title"),
        heading_path=tuple(fields["heading_path"]),
        media_type=fields.get("media_type"),
        language=fields.get("language"),
        modified_at=None,
        start=fields["start"],
        end=fields["end"],
        **get_location_fields(Location.from_row(fields)),
        document_id=fields["document_id"],
        chunk_id=fields["chunk_id"],
        source_sha256=None,
        stale=False,
        context=fields.get("context") or "",
    )
