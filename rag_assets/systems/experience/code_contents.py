"""Detects changes of the code that entries are about, by the catalog of the code's tenant.

An entry stores the hash of each file that it is about when it is captured. If the file was deleted
or changed since, the solution may no longer apply: such patterns are ranked after all others.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from uuid import UUID

from sqlalchemy import ColumnElement, func, select

from rag_assets.api.experience_responses import Pattern
from rag_assets.ingest.sources.model import compute_document_id
from rag_assets.storage.catalog.catalog import Catalog
from rag_assets.systems.experience.model import About, KeptAbout
from rag_assets.systems.experience.tables import knowledge_staging
from rag_assets.tenants.model import Tenant

_STAGED = knowledge_staging.c


@dataclass(frozen=True, slots=True)
class FilesOfTenant:
    """Contents of files in a tenant's catalog; a symbol has the content of its file."""

    catalog: Catalog
    tenant: Tenant

    def contents(self, places: Collection[About]) -> Mapping[About, str | None]:
        """Return a hash of the content of each existing location; None if it was not read yet."""
        ids = {
            compute_document_id(source.name, place.path): place.path
            for place in places
            for source in self.tenant.sources
        }
        found = self.catalog.documents.find(self.tenant.id, list(ids))
        present = {
            ids[one.document_id]: one.content_sha256 for one in found if one.status != "DELETED"
        }
        return {place: present[place.path] for place in places if place.path in present}


def find_code(catalog: Catalog, tenant: Tenant) -> FilesOfTenant | None:
    """Return the code that a tenant's entries are about; None if its code tenant is unknown."""
    if tenant.experience.code_tenant is None:
        return None
    record = catalog.tenants.find(tenant.experience.code_tenant)
    if record is None or record.state != "ACTIVE":
        return None
    return FilesOfTenant(catalog, Tenant.from_config(record.config))


def add_contents(code: FilesOfTenant | None, places: Sequence[About]) -> tuple[KeptAbout, ...]:
    """Return locations with their current content, in the form that an entry stores."""
    contents = code.contents(places) if code is not None and places else {}
    return tuple(
        KeptAbout(path=place.path, symbol=place.symbol, content=contents.get(place))
        for place in places
    )


def add_stale_paths(
    catalog: Catalog,
    tenant: Tenant,
    patterns: Sequence[Pattern],
    living: ColumnElement[bool],
) -> list[Pattern]:
    """Return patterns with their stale paths: files that were deleted or changed.

    A path is not stale if one entry of the pattern has its current content.

    Args:
        living: the condition that an entry is counted (see patterns.is_living).
    """
    code = find_code(catalog, tenant)
    if code is None or not patterns:
        return list(patterns)
    query = select(_STAGED.pattern_id, _STAGED.about).where(
        _STAGED.tenant == tenant.id,
        _STAGED.pattern_id.in_([pattern.id for pattern in patterns]),
        func.jsonb_array_length(_STAGED.about) > 0,
        living,
    )
    known: dict[UUID, list[KeptAbout]] = {}
    with catalog.database.begin() as connection:
        for row in connection.execute(query):
            known.setdefault(row.pattern_id, []).extend(KeptAbout(**one) for one in row.about)
    places = {about.place for abouts in known.values() for about in abouts}
    contents = code.contents(places) if places else {}
    return [
        replace(pattern, stale_paths=_find_stale_paths(known.get(pattern.id, ()), contents))
        for pattern in patterns
    ]


def _find_stale_paths(
    kept_abouts: Iterable[KeptAbout], contents: Mapping[About, str | None]
) -> tuple[str, ...]:
    """Return the paths whose present content differs from the content in every entry."""
    noted: dict[About, set[str]] = {}
    for kept_about in kept_abouts:
        if kept_about.content is not None:
            noted.setdefault(kept_about.place, set()).add(kept_about.content)
    return tuple(
        sorted(
            {
                place.path
                for place, before in noted.items()
                if place not in contents or contents[place] not in {None, *before}
            }
        )
    )
