"""Labels: the kinds of the definitions in each document of source code.

Labels are computed over all files of a repository before a slice's versions are created, unless the
slice cannot change them. A document with changed labels is written again by this run or the next
run; its vectors are not computed again.

The mark of a source is the state of the files from which its derived documents and labels were
computed: a fingerprint of all documents. If a slice changes neither derived documents nor labels,
the mark is moved to the state after the slice, so that nothing is derived again. If the slice is
not published as expected, the mark does not match, and all files are read.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import groupby
from operator import attrgetter
from typing import Final

from rag_assets.common.batches import batched
from rag_assets.common.hashing import compute_key
from rag_assets.ingest.chunking.model import Fact
from rag_assets.ingest.sources.model import parse_path
from rag_assets.pipeline.context import TenantContext
from rag_assets.pipeline.slices import SliceWork, find_parsed_documents
from rag_assets.storage.catalog.catalog import Catalog
from rag_assets.systems.code_memory.catalog.code_catalog import get_code_catalog
from rag_assets.systems.code_memory.catalog.derivations import (
    CodeDocument,
    Fingerprint,
    compute_fingerprint,
)
from rag_assets.systems.code_memory.chunker import reads_code
from rag_assets.systems.code_memory.derived.documents import (
    LABELLED,
    READ_KINDS,
    SIGN_KINDS,
    find_source_types,
    keep_deciding_facts,
    list_deciding_facts,
    list_languages_to_read,
    list_signs,
    uses_django,
)
from rag_assets.systems.code_memory.derived.model import MEDIA_TYPE
from rag_assets.systems.code_memory.relations.relations import Relations, build_relations
from rag_assets.systems.code_memory.sources.records import DerivedConfig
from rag_assets.systems.code_memory.symbols.model import USES, FileFacts
from rag_assets.systems.code_memory.symbols.naming import NameStyle
from rag_assets.tenants.model import Tenant

DERIVING_VERSION: Final = 12
"""Increased whenever the same files would yield other derived documents or labels."""
_ALL_LANGUAGES: Final = "*"
_ALL_TEXTS: Final = "!"


@dataclass(frozen=True, slots=True)
class SourceMark:
    """The state of a source's files from which its derived documents and labels were computed.

    Attributes:
        languages: the languages of the files that the derivation read; None for all files.
        reads_texts: whether the derivation also read texts. If so, files with equal facts may lead
            to different documents.
    """

    fingerprint: Fingerprint
    languages: frozenset[str] | None
    reads_texts: bool = False

    def extend(self, languages: frozenset[str] | None, *, reads_texts: bool) -> SourceMark:
        """Return the mark extended by the languages of further files; None means all languages."""
        known = self.languages
        all_languages = None if known is None or languages is None else known | languages
        return SourceMark(self.fingerprint, all_languages, self.reads_texts or reads_texts)

    def format(self, tenant: Tenant) -> str:
        """Return the mark as the catalog stores it: a key, a colon, and the languages."""
        names = [_ALL_LANGUAGES] if self.languages is None else sorted(self.languages)
        names = [_ALL_TEXTS] if self.reads_texts else names
        return f"{_compute_mark_key(tenant, self.fingerprint)}:{','.join(names)}"


def get_derived_configs(tenant: Tenant) -> dict[str, DerivedConfig]:
    """Return a tenant's sources of derived documents, by the source they are derived from."""
    return {source.of: source for source in tenant.sources if isinstance(source, DerivedConfig)}


def find_due_sources(catalog: Catalog, tenant: Tenant, generation: int) -> dict[str, Fingerprint]:
    """Return the sources whose derived documents are outdated, with their current fingerprint."""
    compared = _compare_marks(catalog, tenant, generation)
    return {source: mark.fingerprint for source, mark, is_settled in compared if not is_settled}


def find_settled_sources(
    catalog: Catalog, tenant: Tenant, generation: int
) -> dict[str, SourceMark]:
    """Return the sources whose derived documents are up to date, with their mark."""
    compared = _compare_marks(catalog, tenant, generation)
    return {source: mark for source, mark, is_settled in compared if is_settled}


def _compare_marks(
    catalog: Catalog, tenant: Tenant, generation: int
) -> Iterator[tuple[str, SourceMark, bool]]:
    """Yield each source with its mark, and whether its derived documents are up to date."""
    configs = get_derived_configs(tenant)
    if not configs:
        return
    derivations = get_code_catalog(catalog).derivations
    recorded = derivations.list_fingerprints(tenant.id)
    for source, fingerprint in derivations.compute_fingerprints(
        tenant.id, generation, configs
    ).items():
        key, _, names = recorded.get(source, "").partition(":")
        has_all = names in {_ALL_LANGUAGES, _ALL_TEXTS}
        languages = None if has_all else frozenset(filter(None, names.split(",")))
        mark = SourceMark(fingerprint, languages, names == _ALL_TEXTS)
        yield source, mark, key == _compute_mark_key(tenant, fingerprint)


def _compute_mark_key(tenant: Tenant, fingerprint: Fingerprint) -> str:
    # A tenant without own frameworks has the same key as before there were own frameworks.
    own = [tenant.own_frameworks_json] if tenant.own_frameworks_json else []
    # Written as text, because numbers beyond 64 bits are not exact in JSON.
    sums = [str(number) for number in fingerprint]
    return compute_key("derived", DERIVING_VERSION, tenant.access.scope, sums, *own)


_BATCH_TEXTS = 2_000
_NAME_STYLES: Mapping[str, NameStyle] = {
    "php": "qualified",
    "python": "python",
    "java": "java",
    "swift": "swift",
    "go": "go",
    "rust": "rust",
    "sql": "sql",
    **dict.fromkeys(("javascript", "typescript", "vue", "svelte"), "javascript"),
}
"""How names are qualified, by language; in other languages, a name is only known in its file."""


def label_documents(ctx: TenantContext, work: SliceWork) -> None:
    """Label the documents of a slice with the kinds of their definitions."""
    if not reads_code(ctx.tenant) or not work.documents:
        return
    code = get_code_catalog(ctx.catalog)
    parsed = _read_slice(ctx, work)
    number = work.generation.number
    former = code.kinds.iter_indexed(ctx.ref.id, number, [*parsed])
    former_by_id = {document.document_id: document for document in former}
    serving = ctx.catalog.generations.serving(ctx.ref.id)
    is_served = serving is not None and serving.number == number and not work.is_superseded
    settled = find_settled_sources(ctx.catalog, ctx.tenant, number) if is_served else {}
    pairs = [(former_by_id.get(id_), document) for id_, document in parsed.items()]
    change = _SliceChange(ctx, pairs, settled)
    if change.keeps_labels():
        change.move_marks()
        return
    changed: dict[str, Mapping[str, str]] = {}
    indexed = {
        document.document_id: document for document in code.kinds.iter_indexed(ctx.ref.id, number)
    }
    documents = [*(indexed | parsed).values()]
    for files in iter_repositories(documents):
        labelled = [*filter(is_labelled, files)]
        signs, deciding = read_survey(ctx, labelled)
        python = [document for document in labelled if get_language(document) == "python"]
        whole = load_file_facts(ctx, python) if uses_django(signs) else {}
        own = ctx.tenant.own_frameworks_json
        changed |= find_changed_labels(files, {**deciding, **whole}, own)
    if changed:
        ctx.guard()
        # Labels now match the build's files, unless this run is interrupted.
        code.derivations.set_fingerprints(ctx.ref, {document.source: "" for document in documents})
        code.kinds.record(ctx.ref, changed)


def is_labelled(document: CodeDocument) -> bool:
    """Return whether any framework assigns kinds to definitions in the document's language."""
    return get_language(document) in LABELLED


def is_index(document: CodeDocument) -> bool:
    """Return whether a document of a repository is a SCIP index."""
    return document.media_type == MEDIA_TYPE


def find_changed_labels(
    documents: Iterable[CodeDocument], files: Mapping[str, FileFacts], custom: str = ""
) -> dict[str, Mapping[str, str]]:
    """Return the labels that differ from the recorded ones, by document of one repository.

    Args:
        files: facts by document; they must include all documents that get labels.
        custom: the tenant's own frameworks as JSON; see load_all_frameworks.
    """
    by_path: dict[str, dict[str, str]] = {}
    for (path, symbol), kind in find_source_types([*files.values()], custom).items():
        by_path.setdefault(path, {})[symbol] = kind
    return {
        document.document_id: wanted_kinds
        for document in documents
        if (wanted_kinds := by_path.get(parse_path(document.uri), {})) != document.kinds
    }


class _SliceChange:
    """The changes that a slice makes to a build, judged only by the documents in the slice.

    Args:
        pairs: each document of the slice with its former text, if any, and with its new text.
        settled: the marks of sources whose labels and derived documents match the build.
    """

    def __init__(
        self,
        ctx: TenantContext,
        pairs: Sequence[tuple[CodeDocument | None, CodeDocument]],
        settled: Mapping[str, SourceMark],
    ) -> None:
        self._ctx, self._pairs, self._settled = ctx, pairs, settled

    def keeps_labels(self) -> bool:
        """Return whether the recorded labels are current and the slice does not change them."""
        for old, new in self._pairs:
            present = [document for document in (old, new) if document is not None]
            if any(map(is_labelled, present)) and new.source not in self._settled:
                return False
        decide = self._list_deciding_facts
        return all(decide(old) == decide(new) for old, new in self._pairs)

    def move_marks(self) -> None:
        """Move the marks of sources whose derived documents the slice does not change."""
        moved_marks: dict[str, str] = {}
        for source, mark in self._settled.items():
            pairs = [(old, new) for old, new in self._pairs if new.source == source]
            if pairs and all(self._keeps_derived(mark, old, new) for old, new in pairs):
                before = compute_fingerprint(old for old, _ in pairs if old is not None)
                after = compute_fingerprint(new for _, new in pairs)
                sums = zip(mark.fingerprint, before, after, strict=True)
                first, second = (known - subtracted + added for known, subtracted, added in sums)
                moved_marks[source] = replace(mark, fingerprint=(first, second)).format(
                    self._ctx.tenant
                )
        if moved_marks:
            self._ctx.guard()
            get_code_catalog(self._ctx.catalog).derivations.set_fingerprints(
                self._ctx.ref, moved_marks
            )

    def _list_deciding_facts(self, document: CodeDocument | None) -> list[object]:
        if document is None or not is_labelled(document):
            return []
        own = self._ctx.tenant.own_frameworks_json
        return list_deciding_facts(self._list_facts(document), get_language(document), own)

    def _keeps_derived(self, mark: SourceMark, old: CodeDocument | None, new: CodeDocument) -> bool:
        """Return whether the change of a document certainly leaves derived documents unchanged."""
        present = [document for document in (old, new) if document is not None]
        if mark.reads_texts or any(map(is_index, present)):
            return False
        if mark.languages is not None:
            own = self._ctx.tenant.own_frameworks_json
            signs = list_signs(_build_file_facts(new, self._list_facts(new)), own)
            read = list_languages_to_read(frozenset(signs), own)
            if read is None or not read <= mark.languages:
                return False
            if mark.languages.isdisjoint({get_language(document) for document in present}):
                return True
        return (
            old is not None
            and (old.media_type, old.access_scope) == (new.media_type, new.access_scope)
            and self._list_facts(old) == self._list_facts(new)
        )

    def _list_facts(self, document: CodeDocument) -> tuple[Fact, ...]:
        return self._facts.get(document.chunk_set_key, ())

    @cached_property
    def _facts(self) -> Mapping[str, tuple[Fact, ...]]:
        """Return the facts of the slice's texts, new and former, by chunk_set_key."""
        documents = (document for pair in self._pairs for document in pair if document is not None)
        return self._ctx.lake.facts({o.chunk_set_key for o in documents}, _is_label_fact)


def read_survey(
    ctx: TenantContext, documents: Sequence[CodeDocument]
) -> tuple[frozenset[str], dict[str, FileFacts]]:
    """Return the signs of a repository, and the facts that decide labels, by document.

    In a repository that uses Django, all facts of Python files decide labels.
    """
    signs: set[str] = set()
    files: dict[str, FileFacts] = {}
    for document, facts in _read_facts(ctx, documents, (SIGN_KINDS | READ_KINDS).__contains__):
        file = _build_file_facts(document, facts)
        own = ctx.tenant.own_frameworks_json
        signs |= list_signs(file, own)
        kept = keep_deciding_facts(facts, file.language, own)
        files[document.document_id] = replace(file, facts=kept)
    return frozenset(signs), {
        document.document_id: files[document.document_id] for document in documents
    }


def build_relations_of_texts(
    ctx: TenantContext, media_types: Mapping[str, str | None]
) -> dict[str, Relations]:
    """Return the relations of those texts that have facts, by chunk_set_key.

    Args:
        media_types: the media type of each text, by chunk_set_key.
    """
    languages = {key: _get_language_of_type(media_type) for key, media_type in media_types.items()}
    hashes = ctx.lake.read_definition_hashes(languages)
    return {
        key: build_relations(
            facts, hashes.get(key, {}), names=_NAME_STYLES.get(languages[key], "none")
        )
        for key, facts in ctx.lake.facts(languages).items()
    }


def _read_slice(ctx: TenantContext, work: SliceWork) -> dict[str, CodeDocument]:
    """Return the documents of the slice by id, each with the key of its newest text."""
    parsed = find_parsed_documents(ctx, work.documents)
    known = get_code_catalog(ctx.catalog).kinds.get(
        ctx.ref.id, [item.document.document_id for item in parsed]
    )
    return {
        (document := item.document).document_id: CodeDocument(
            *(
                document.document_id,
                document.source,
                document.uri,
                document.media_type,
                document.access_scope,
            ),
            chunk_set_key=item.chunk_set_key,
            kinds=known.get(document.document_id, {}),
        )
        for item in parsed
    }


def iter_repositories(documents: Iterable[CodeDocument]) -> Iterator[list[CodeDocument]]:
    """Yield the documents of each source and access scope separately."""
    get_repository = attrgetter("source", "access_scope")
    for _, group in groupby(sorted(documents, key=get_repository), key=get_repository):
        yield list(group)


def get_language(document: CodeDocument) -> str:
    """Return the language in a document's media type: `ruby` for `text/x-ruby`."""
    return _get_language_of_type(document.media_type)


def _get_language_of_type(media_type: str | None) -> str:
    return (media_type or "").rpartition("/")[2].removeprefix("x-")


def load_file_facts(ctx: TenantContext, documents: Sequence[CodeDocument]) -> dict[str, FileFacts]:
    """Return the facts of documents with their paths, by document, in the given order."""
    files_by_id = {
        d.document_id: _build_file_facts(d, facts)
        for d, facts in _read_facts(ctx, documents, _is_label_fact)
    }
    return {document.document_id: files_by_id[document.document_id] for document in documents}


def _is_label_fact(kind: str) -> bool:
    """Return whether facts of a kind are read: all except the large index of a file's names."""
    return kind != USES


def _build_file_facts(document: CodeDocument, facts: tuple[Fact, ...]) -> FileFacts:
    return FileFacts(parse_path(document.uri), get_language(document), facts)


def _read_facts(
    ctx: TenantContext, documents: Sequence[CodeDocument], wants_kind: Callable[[str], bool]
) -> Iterator[tuple[CodeDocument, tuple[Fact, ...]]]:
    """Yield documents with those facts of their texts that `wants_kind` selects, in any order."""
    by_text: dict[str, list[CodeDocument]] = {}
    for document in documents:
        by_text.setdefault(document.chunk_set_key, []).append(document)
    # The lake sorts its rows by these keys, so a batch in order is read from few row groups.
    for batch in batched(sorted(by_text), _BATCH_TEXTS):
        with _pause_collector():
            facts_by_key = ctx.lake.facts(batch, wants_kind)
        for key in batch:
            for document_of_text in by_text[key]:
                yield document_of_text, facts_by_key.get(key, ())


@contextmanager
def _pause_collector() -> Iterator[None]:
    """Pause Python's garbage collector, which would scan all facts again and again."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
