"""Marks: the state of the files from which derived documents and labels were computed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

from rag_assets.common.hashing import key_of
from rag_assets.storage.catalog.catalog import Catalog
from rag_assets.systems.code_memory.catalog.code_catalog import code_catalog
from rag_assets.systems.code_memory.catalog.derivations import Fingerprint
from rag_assets.systems.code_memory.sources.records import DerivedConfig
from rag_assets.tenants.model import Tenant

DERIVING_VERSION: Final = 7
"""Increase this number when the same files would yield other derived documents or labels."""
_ALL: Final = "*"
_TEXTS: Final = "!"


@dataclass(frozen=True, slots=True)
class SourceMark:
    """The state of a source's files for which its derived documents and labels are right.

    Attributes:
        fingerprint: the fingerprint of all documents of the source.
        languages: the languages of the files that the derivation read; None for all files.
        reads_texts: whether the derivation also read texts, so that files with the same facts may
            lead to other documents.
    """

    fingerprint: Fingerprint
    languages: frozenset[str] | None
    reads_texts: bool = False

    def also_read(self, languages: frozenset[str] | None) -> SourceMark:
        """Return the mark after files in further languages were read; None for all languages."""
        known = self.languages
        both = None if known is None or languages is None else known | languages
        return replace(self, languages=both)

    def stored(self, tenant: Tenant) -> str:
        """Return the mark in the form in which the catalog stores it: a key, and the languages."""
        names = [_ALL] if self.languages is None else sorted(self.languages)
        names = [_TEXTS] if self.reads_texts else names
        return f"{_key(tenant, self.fingerprint)}:{','.join(names)}"


def derived_configs(tenant: Tenant) -> dict[str, DerivedConfig]:
    """Return a tenant's sources of derived documents, by the source they are derived from."""
    return {one.of: one for one in tenant.sources if isinstance(one, DerivedConfig)}


def due_sources(catalog: Catalog, tenant: Tenant, generation: int) -> dict[str, Fingerprint]:
    """Return the sources whose derived documents are out of date, with their current fingerprint.

    Args:
        catalog: contains the recorded marks.
        tenant: the tenant of the documents.
        generation: the build with the files to compare.
    """
    return {
        source: fingerprint
        for source, fingerprint, mark in _compare_marks(catalog, tenant, generation)
        if mark is None
    }


def settled_sources(catalog: Catalog, tenant: Tenant, generation: int) -> dict[str, SourceMark]:
    """Return the sources whose derived documents are up to date, with their mark."""
    return {
        source: mark
        for source, _, mark in _compare_marks(catalog, tenant, generation)
        if mark is not None
    }


def _compare_marks(
    catalog: Catalog, tenant: Tenant, generation: int
) -> Iterator[tuple[str, Fingerprint, SourceMark | None]]:
    """Yield each source with its current fingerprint, and its mark if that is up to date."""
    configs = derived_configs(tenant)
    if not configs:
        return
    derivations = code_catalog(catalog).derivations
    recorded = derivations.recorded(tenant.id)
    for source, fingerprint in derivations.fingerprints(tenant.id, generation, configs).items():
        key, _, names = recorded.get(source, "").partition(":")
        is_whole = names in {_ALL, _TEXTS}
        languages = None if is_whole else frozenset(filter(None, names.split(",")))
        is_settled = key == _key(tenant, fingerprint)
        mark = SourceMark(fingerprint, languages, names == _TEXTS)
        yield source, fingerprint, mark if is_settled else None


def _key(tenant: Tenant, fingerprint: Fingerprint) -> str:
    # Only if the tenant has own frameworks: the keys of other tenants must not change.
    own = [tenant.own_frameworks] if tenant.own_frameworks else []
    # As texts: JSON's numbers are not exact beyond 64 bits.
    sums = [str(one) for one in fingerprint]
    return key_of("derived", DERIVING_VERSION, tenant.access.scope, sums, *own)
