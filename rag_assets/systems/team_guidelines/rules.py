"""Rules: front matter of documents that adds them to tasks, in addition to search results.

    ---
    always: true                    applies to every task
    paths: ["tests/**", "*.spec.ts"]        applies to tasks about files that match a glob
    ---

A sync stores the rules of published Markdown documents in `guideline_rules`. A context includes
the passages of the rules that apply to its task.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError
from sqlalchemy import Select, and_, select
from sqlalchemy.dialects.postgresql import insert

from rag_assets.api.guideline_responses import RuleKind
from rag_assets.common.errors import RagAssetsError
from rag_assets.ingest.chunking.model import Location, location_fields
from rag_assets.ingest.parsing.media_types import MARKDOWN
from rag_assets.ingest.parsing.model import ParsedText
from rag_assets.ingest.sources.globs import compile_globs
from rag_assets.pipeline.context import TenantContext
from rag_assets.search.access import DocumentReader
from rag_assets.search.model import Caller, Hit
from rag_assets.storage.catalog.builds.generations import Generation
from rag_assets.storage.catalog.catalog import Catalog
from rag_assets.storage.catalog.tables import document_index, serving
from rag_assets.storage.catalog.uploads.model import uploads
from rag_assets.storage.index.model import StoredEntry
from rag_assets.systems.team_guidelines.tables import guideline_rules

MAX_PATHS = 100
"""Maximum number of globs of one document, and of files of a task."""
_MAX_PATH_CHARACTERS = 500
_FENCE = re.compile(r"\A---[ \t]*\r?\n(?P<yaml>.*?)\r?\n---[ \t]*(?:\r?\n|\Z)", re.DOTALL)
_PATH_IN_TEXT = re.compile(r"(?<![\w@:/.])(?:[\w.-]+/)*[\w-]+(?:\.[\w-]+)*\.[A-Za-z]\w{0,9}\b(?!/)")


@dataclass(frozen=True, slots=True)
class Rule:
    """The tasks to which a document applies by its front matter; none by default.

    Attributes:
        is_always: whether it applies to every task.
        paths: globs; the document applies to tasks about a matching file.
    """

    is_always: bool = False
    paths: tuple[str, ...] = ()


class RuleFollowUp:
    """Stores the rules of published documents at the end of a sync (see FollowUp)."""

    def unfinished(self, catalog: Catalog, tenant_id: str) -> str | None:
        """Return why a tenant needs a run although no source changed; None if it needs none."""
        with catalog.database.begin() as connection:
            is_left = connection.scalar(select(_select_unread(tenant_id).exists()))
        return "the front matter of some documents has not been read yet" if is_left else None

    def kept_texts(self, catalog: Catalog, tenant_id: str) -> frozenset[str]:
        """Return an empty set, because rules have no vectors."""
        return frozenset()

    def finish(self, ctx: TenantContext, serving: Generation) -> Mapping[str, Any]:
        """Store the rules of published documents; return a count for the run's page."""
        with ctx.catalog.database.begin() as connection:
            documents = connection.execute(_select_unread(ctx.ref.id)).all()
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
                put = insert(guideline_rules).values(values)
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
    """Return the files of a task: the given paths, and the paths in its text."""
    named = [match[0] for match in _PATH_IN_TEXT.finditer(task)]
    return tuple(dict.fromkeys([*paths, *named]))[:MAX_PATHS]


def matches(globs: Sequence[str], files: Sequence[str]) -> bool:
    """Return whether a glob matches a file, or a folder that contains it."""
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
    """Yield a file and each folder that contains it, as arguments of Rules.decide()."""
    parts = [part for part in file.encode(errors="replace").split(b"/") if part not in {b"", b"."}]
    for at, name in enumerate(parts):
        folder = b"".join(part + b"/" for part in parts[:at])
        yield folder, name, at < len(parts) - 1


def read_rule_hits(
    reader: DocumentReader, tenant_id: str, caller: Caller, files: Sequence[str]
) -> list[tuple[Hit, RuleKind]]:
    """Return the passages of the rules that apply to files, rules for every task first.

    Documents that the caller may not read are left out.
    """
    kinds = _find_rules(reader.catalog, tenant_id, files)
    if not kinds:
        return []
    try:
        documents = reader.entries_of(tenant_id, caller, [*kinds])
    except RagAssetsError:
        return []  # the search will report the failure
    return [
        (_build_hit(entry), kind)
        for document_id, kind in kinds.items()
        for entry in documents.get(document_id, ())
    ]


def _find_rules(catalog: Catalog, tenant_id: str, files: Sequence[str]) -> dict[str, RuleKind]:
    """Return the kinds of the rules that apply by document id, ordered by kind and file name."""
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
        if row.is_always or matches(row.paths.split("\n"), files)
    }


def _select_unread(tenant_id: str) -> Select[Any]:
    """Return the query of served Markdown documents with an unread front matter."""
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
        **location_fields(Location.of(fields)),
        document_id=fields["document_id"],
        chunk_id=fields["chunk_id"],
        source_sha256=None,
        stale=False,
        context=fields.get("context") or "",
    )
