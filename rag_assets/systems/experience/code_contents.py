"""Detects whether the code that entries are about has changed.

A captured entry stores a hash of each file that it is about, from the catalog of the code's tenant.
If the file is deleted or changed later, the solution may no longer apply, so its pattern is ranked
after all others.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from uuid import UUID

from sqlalchemy import ColumnElement, func, select

from rag_assets.api.experience_responses import Pattern
from rag_assets.ingest.sources.model import compute_document_id
from rag_assets.storage.catalog.catalog import Catalog
from rag_assets.systems.experience.model import About, CapturedAbout
from rag_assets.systems.experience.tables import knowledge_staging
from rag_assets.tenants.model import Tenant

_STAGED = knowledge_staging.c


@dataclass(frozen=True, slots=True)
class CodeFiles:
    """Looks up content hashes in a tenant for code; a symbol has the hash of its file."""

    catalog: Catalog
    tenant: Tenant

    def read_contents(self, locations: Collection[About]) -> Mapping[About, str | None]:
        """Return the content hash of the file at each location; missing files are left out.

        The hash is None if the file was not read yet.
        """
        ids = {
            compute_document_id(source.name, location.path): location.path
            for location in locations
            for source in self.tenant.sources
        }
        documents = self.catalog.documents.find(self.tenant.id, list(ids))
        present = {
            ids[document.document_id]: document.content_sha256
            for document in documents
            if document.status != "DELETED"
        }
        return {
            location: present[location.path] for location in locations if location.path in present
        }


def find_code_files(catalog: Catalog, tenant: Tenant) -> CodeFiles | None:
    """Return the files of the tenant that indexes a tenant's code; None if it is not active."""
    if tenant.experience.code_tenant is None:
        return None
    record = catalog.tenants.find(tenant.experience.code_tenant)
    if record is None or record.state != "ACTIVE":
        return None
    return CodeFiles(catalog, Tenant.from_config(record.config))


def add_contents(code: CodeFiles | None, locations: Sequence[About]) -> tuple[CapturedAbout, ...]:
    """Return locations in the form that an entry stores, with the current hashes of contents."""
    contents = code.read_contents(locations) if code is not None and locations else {}
    return tuple(
        CapturedAbout(path=location.path, symbol=location.symbol, content=contents.get(location))
        for location in locations
    )


def add_stale_paths(
    catalog: Catalog,
    tenant: Tenant,
    patterns: Sequence[Pattern],
    living: ColumnElement[bool],
) -> list[Pattern]:
    """Return patterns with their stale paths: files that were deleted or changed.

    A path is not stale if any entry of the pattern was captured when the file had its current
    content.
    """
    code = find_code_files(catalog, tenant)
    if code is None or not patterns:
        return list(patterns)
    query = select(_STAGED.pattern_id, _STAGED.about).where(
        _STAGED.tenant == tenant.id,
        _STAGED.pattern_id.in_([pattern.id for pattern in patterns]),
        func.jsonb_array_length(_STAGED.about) > 0,
        living,
    )
    captured: dict[UUID, list[CapturedAbout]] = {}
    with catalog.database.begin() as connection:
        for row in connection.execute(query):
            captured.setdefault(row.pattern_id, []).extend(CapturedAbout(**a) for a in row.about)
    locations = {about.location for abouts in captured.values() for about in abouts}
    contents = code.read_contents(locations) if locations else {}
    return [
        replace(pattern, stale_paths=_find_stale_paths(captured.get(pattern.id, ()), contents))
        for pattern in patterns
    ]


def _find_stale_paths(
    abouts: Iterable[CapturedAbout], contents: Mapping[About, str | None]
) -> tuple[str, ...]:
    """Return the paths whose current content differs from the content stored by every entry."""
    captured: dict[About, set[str]] = {}
    for about in abouts:
        if about.content is not None:
            captured.setdefault(about.location, set()).add(about.content)
    return tuple(
        sorted(
            {
                location.path
                for location, hashes in captured.items()
                if location not in contents or contents[location] not in {None, *hashes}
            }
        )
    )
