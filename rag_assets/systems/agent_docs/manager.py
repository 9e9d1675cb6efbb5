"""The index manager: builds, refreshes and searches the indexes of agents.

A hybrid search combines the ranking by vectors with a ranking by words. Words match exact names and
flags, which vectors may miss.
"""

from __future__ import annotations

import asyncio
import math
import time
from array import array
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from typing import Final, Literal

import numpy as np

from rag_assets.common.batches import batched
from rag_assets.common.errors import ConfigurationError, InputRejected
from rag_assets.models.embedding.coverage import Reading, assess_reading
from rag_assets.models.embedding.protocol import Embedder, Purpose
from rag_assets.search.contexts import format_passages
from rag_assets.search.fusion import (
    FOREIGN_WORD_FACTOR,
    compare_peaks,
    fuse,
    normalize_cosines,
    normalize_word_scores,
)
from rag_assets.storage.index.common_words import find_sentence_language
from rag_assets.storage.index.terms import (
    build_forms,
    choose_analysis,
    compute_lexical_terms,
    parse_query_words,
)
from rag_assets.systems.agent_docs.errors import DamagedIndex
from rag_assets.systems.agent_docs.globs import Matches, expand_patterns, is_inside
from rag_assets.systems.agent_docs.passages import (
    Chunking,
    Mask,
    Passages,
    SecretMasker,
    collect_passages,
    compute_fingerprint,
    may_have_changed,
    refresh_file_states,
)
from rag_assets.systems.agent_docs.settings import Agent, Configuration, Mode, RagSettings
from rag_assets.systems.agent_docs.stores import (
    DocChunk,
    IndexState,
    MemoryStore,
    PassageStore,
    SearchResult,
    Trust,
    Vectors,
    Verdict,
)

_MAX_TRIES: Final = 5
"""Maximum attempts of a search while its index is being replaced; the last result is then used."""
_UNKNOWN_TIME: Final = -1


@dataclass(frozen=True, slots=True)
class IndexReport:
    """The result of RagIndexManager.ensure_index.

    Attributes:
        embedded: number of texts that were sent to the embedder this time.
        dropped: number of passages left out because they contain only masked characters.
        secrets: files with masked credentials, and the rules that matched.
        built: whether the index was replaced; False if it was current.
        left_out: files that are not indexed, and why.
        empty: patterns that match no file.
    """

    agent_id: str
    files: int
    chunks: int
    embedded: int
    dropped: int
    secrets: Mapping[str, tuple[str, ...]]
    built: bool
    left_out: Mapping[str, str]
    empty: tuple[str, ...]
    seconds: float


class RagIndexManager:
    """Builds and searches the indexes of agents in a store.

    Args:
        mask: masks credentials; by default with our rules for credentials.
        trust: seals indexes; by default with the user's key.
    """

    def __init__(
        self,
        embedder: Embedder,
        store: PassageStore,
        chunking: Chunking | None = None,
        *,
        mask: Mask | None = None,
        trust: Trust | None = None,
    ) -> None:
        self.store = store
        self._embedder = embedder
        self._chunking = chunking or Chunking()
        self._mask = mask or SecretMasker()
        self._trust = trust or Trust()
        self._words: dict[str, tuple[str, WordIndex]] = {}
        self._matches: dict[str, Matches] = {}
        self._failures: dict[str, Verdict] = {}
        """Why a passage of an agent's index could not be returned, by agent id."""

    def ensure_index(
        self, agent_id: str, doc_sources: Sequence[str], base_dir: Path
    ) -> IndexReport:
        """Build an agent's index if its files have changed.

        The previous index answers until the new index replaces it. Only passages without a vector
        are embedded. If another process is building the index, this call waits for it.

        Raises:
            ConfigurationError: the patterns visit too many files.
            ProviderError: the embedder failed; the previous index stays.
        """
        try:
            return self._ensure_index(agent_id, doc_sources, base_dir)
        except DamagedIndex:
            # The store has noticed the damage, and will rename the file before the next build.
            return self._ensure_index(agent_id, doc_sources, base_dir)

    def _ensure_index(
        self, agent_id: str, doc_sources: Sequence[str], base_dir: Path
    ) -> IndexReport:
        started = time.monotonic()
        looked_ns, matches = time.time_ns(), self._expand_patterns(agent_id, doc_sources, base_dir)
        state = self._read_state(agent_id)
        if state is None or not self._is_current(state, matches):
            with self.store.building(agent_id):
                # Files may have changed while another process built the index.
                looked_ns, matches = (
                    time.time_ns(),
                    self._expand_patterns(agent_id, doc_sources, base_dir),
                )
                state = self._read_state(agent_id)
                if state is None or not self._is_current(state, matches):
                    return self._build_index(agent_id, matches, looked_ns, state, started)
        return _build_report(agent_id, state, matches, started)

    def is_current(self, agent_id: str, doc_sources: Sequence[str], base_dir: Path) -> bool:
        """Return whether an index matches its files, judged by their sizes and times."""
        state = self._read_state(agent_id)
        matches = self._expand_patterns(agent_id, doc_sources, base_dir)
        return state is not None and self._is_current(state, matches)

    def needs_rebuild(self, agent_id: str) -> bool:
        """Return whether a search found a passage that does not match its file.

        Such a passage is not returned. The next call of ensure_index then reads all files.
        """
        return agent_id in self._failures

    def can_answer(self, agent_id: str) -> bool:
        """Return whether an agent has an index with vectors of this embedder."""
        state = self._read_state(agent_id)
        return state is not None and state.embedder_id == self._embedder.embedder_id

    def search_agent(
        self, agent: Agent, query: str, top_k: int | None = None
    ) -> list[SearchResult]:
        """Search an agent's index with the agent's own settings; see search()."""
        docs = agent.docs
        return self.search(
            *(agent.id, query, top_k or docs.top_k.value),
            mode=docs.mode.value,
            min_score=docs.min_score.value,
        )

    def search(
        self,
        agent_id: str,
        query: str,
        top_k: int = 5,
        *,
        mode: Mode = "knn",
        min_score: float | None = None,
    ) -> list[SearchResult]:
        """Return the passages that answer a question, best first.

        Without an index of this embedder, the result is empty.

        Args:
            mode: "hybrid" also matches the words of exact names and flags; scores stay cosines.

        Raises:
            InputRejected: the query is empty or has no readable content.
            ProviderError: the embedder failed.
            DamagedIndex: the index cannot be read; ensure_index builds it again.
        """
        state = self._read_sealed_state(agent_id)
        if state is None or state.embedder_id != self._embedder.embedder_id:
            return []
        vector = asyncio.run(self._embed([query], "query"))[0]
        if vector is None:
            raise InputRejected(
                "the query is empty or has no readable content",
                hint="enter the words to search for",
            )

        def search_vectors(count: int) -> list[SearchResult]:
            results = self.store.search(vector, agent_id, count)
            return [result for result in results if min_score is None or result.score >= min_score]

        def rank(state: IndexState, count: int) -> list[SearchResult]:
            if mode == "knn":
                return search_vectors(count)
            words = self._words.get(agent_id)
            if words is None or words[0] != state.fingerprint:
                index = WordIndex.from_passages(self.store.chunks(agent_id))
                words = self._words[agent_id] = (state.fingerprint, index)
            nearest = search_vectors(len(state.text_hashes))
            reading = assess_reading(self._embedder, query, find_sentence_language(query))
            return fuse_rankings(query, words[1], nearest, count, reading=reading)

        for _ in range(_MAX_TRIES):
            results, failure = self._rank_valid_passages(agent_id, state, rank, top_k)
            # The failure may only mean that the index was replaced after its state was read.
            newer = state if failure is None else self._read_sealed_state(agent_id)
            if newer is None or newer is state:
                break
            state = newer
        if failure is not None:
            self._failures[agent_id] = failure
        return results

    def _rank_valid_passages(
        self,
        agent_id: str,
        state: IndexState,
        rank: Callable[[IndexState, int], list[SearchResult]],
        top_k: int,
    ) -> tuple[list[SearchResult], Verdict | None]:
        """Return the best results whose passages match their files, and why others were dropped.

        The reason is "altered" if any dropped passage was altered, "stale" if others were dropped,
        and None if none was dropped.
        """
        count, verdicts = top_k, set[Verdict]()
        matches = self._matches.get(agent_id)
        while True:
            ranked = rank(state, count)
            locations = None
            if matches is not None:
                paths = {result.chunk.source_path for result in ranked}
                locations = {f.path: f.location for f in matches.files if f.path in paths}
            valid = []
            for result in ranked:
                verdict = self._trust.check_passage(state, result.chunk, locations)
                verdicts.add(verdict)
                if verdict == "valid":
                    valid.append(result)
            if len(valid) >= top_k or len(ranked) < count:
                if "altered" in verdicts:
                    return valid[:top_k], "altered"
                return valid[:top_k], "stale" if "stale" in verdicts else None
            count *= 2

    def _expand_patterns(
        self, agent_id: str, doc_sources: Sequence[str], base_dir: Path
    ) -> Matches:
        matches = self._matches[agent_id] = expand_patterns(doc_sources, base_dir)
        return matches

    def _read_sealed_state(self, agent_id: str) -> IndexState | None:
        """Return the stored state of an index if this user sealed it.

        The result is None otherwise, and if a search found an altered passage.
        """
        state = self.store.state(agent_id)
        if state is None or self._failures.get(agent_id) == "altered":
            return None
        return state if self._trust.is_sealed(agent_id, state) else None

    def _read_state(self, agent_id: str) -> IndexState | None:
        """Return the sealed state of an index, changed so that a build reads all suspect files.

        If a search found a passage that does not match its file, the result has no file times, so
        that the next build reads every file.
        """
        state = self._read_sealed_state(agent_id)
        if state is None or agent_id not in self._failures:
            return state
        files = tuple(replace(file, mtime_ns=_UNKNOWN_TIME) for file in state.files)
        return replace(state, fingerprint="", files=files)

    def _is_current(self, state: IndexState, matches: Matches) -> bool:
        return (
            self._was_built_alike(state)
            and state.fingerprint == compute_fingerprint(matches.files)
            and not any(may_have_changed(file, state.looked_ns) for file in state.files)
        )

    def _was_built_alike(self, state: IndexState) -> bool:
        is_same_embedder = state.embedder_id == self._embedder.embedder_id
        return is_same_embedder and state.recipe == self._chunking.recipe

    def _build_index(
        self,
        agent_id: str,
        matches: Matches,
        looked_ns: int,
        previous: IndexState | None,
        started: float,
    ) -> IndexReport:
        reusable = previous if previous is not None and self._was_built_alike(previous) else None
        fingerprint = compute_fingerprint(matches.files)
        files = None if reusable is None else refresh_file_states(matches.files, reusable)
        if reusable is not None and files is not None:
            state = replace(reusable, fingerprint=fingerprint, looked_ns=looked_ns, files=files)
            self.store.touch(agent_id, self._trust.seal(state))
            self._failures.pop(agent_id, None)
            return _build_report(agent_id, state, matches, started)
        known = None if reusable is None else (reusable, self.store.chunks(agent_id))
        passages = collect_passages(agent_id, matches.files, self._chunking, self._mask, known)
        vectors, embedded = self._embed_missing(agent_id, passages, previous)
        hashes = passages.text_hashes
        chunks = [chunk for chunk in passages.chunks if hashes[chunk.id] in vectors]
        state = IndexState(
            fingerprint,
            self._embedder.embedder_id,
            self._chunking.recipe,
            looked_ns,
            tuple(passages.files),
            passages.left_out,
            {chunk.id: hashes[chunk.id] for chunk in chunks},
            {chunk.id: passages.digests[chunk.id] for chunk in chunks},
        )
        rows = [vectors[hashes[chunk.id]] for chunk in chunks]
        no_rows = np.empty((0, self._embedder.dimensions), dtype=np.float32)
        stacked = np.stack(rows) if rows else no_rows
        self.store.replace(agent_id, chunks, stacked, self._trust.seal(state))
        self._failures.pop(agent_id, None)
        return _build_report(agent_id, state, matches, started, embedded=embedded, is_built=True)

    def _embed_missing(
        self, agent_id: str, passages: Passages, previous: IndexState | None
    ) -> tuple[dict[str, Vectors], int]:
        """Return the vector of each text by its hash, and how many texts were sent to the embedder.

        A text that the embedder rejects has no vector.
        """
        vectors: dict[str, Vectors] = {}
        if previous is not None and previous.embedder_id == self._embedder.embedder_id:
            hashes = previous.text_hashes
            stored = self.store.vectors(agent_id)
            vectors = {hashes[id_]: row for id_, row in stored.items() if id_ in hashes}
        missing = {key: text for key, text in passages.texts.items() if key not in vectors}
        rows = asyncio.run(self._embed(list(missing.values()), "document")) if missing else []
        vectors |= {key: row for key, row in zip(missing, rows, strict=True) if row is not None}
        return vectors, len(missing)

    async def _embed(self, texts: Sequence[str], purpose: Purpose) -> list[Vectors | None]:
        """Embed texts in batches; a rejected text yields None."""
        limits = self._embedder.limits
        slots = asyncio.Semaphore(limits.concurrency)

        async def embed_batch(batch: Sequence[str]) -> list[Vectors | None]:
            async with slots:
                try:
                    return list((await self._embedder.embed(batch, purpose=purpose)).vectors)
                except InputRejected:
                    if len(batch) == 1:
                        return [None]
            return [row for text in batch for row in await embed_batch([text])]

        try:
            batches = [embed_batch(batch) for batch in batched(texts, limits.texts)]
            return [row for rows in await asyncio.gather(*batches) for row in rows]
        finally:
            await self._embedder.close()


def _build_report(
    agent_id: str,
    state: IndexState,
    matches: Matches,
    started: float,
    *,
    embedded: int = 0,
    is_built: bool = False,
) -> IndexReport:
    return IndexReport(
        agent_id,
        files=len(state.files) - len(state.left_out),
        chunks=len(state.text_hashes),
        embedded=embedded,
        dropped=sum(file.dropped for file in state.files),
        secrets={file.path: file.rules for file in state.files if file.rules},
        built=is_built,
        left_out=state.left_out,
        empty=matches.empty,
        seconds=time.monotonic() - started,
    )


def format_results(results: Sequence[SearchResult]) -> str:
    """Format passages with a marker line above each, or a sentence if there are none."""
    return format_passages(
        (number, result.score, result.chunk.source_path, result.chunk.content)
        for number, result in enumerate(results, start=1)
    )


_CACHE_FOLDER: Final = ".fastembed_cache"
_BGE: Final = "bge-small-en-v1.5"
_REQUIRED_PACKAGES: Final = ("onnxruntime", "tokenizers")


def open_manager(configuration: Configuration) -> RagIndexManager:
    """Create the index manager that a configuration describes.

    Raises:
        ConfigurationError: no embedder can be loaded.
    """
    rag = configuration.rag
    chunking = Chunking(rag.chunk_size.value, rag.chunk_overlap.value)
    return RagIndexManager(open_embedder(configuration), open_store(rag), chunking)


def open_store(rag: RagSettings) -> PassageStore:
    """Create the store that the settings name; it writes nothing before the first index."""
    if rag.store.value == "memory":
        return MemoryStore()
    if rag.store.value == "file":
        from rag_assets.systems.agent_docs.file_store import FileStore

        return FileStore(rag.path.value)
    from rag_assets.systems.agent_docs.sqlite_store import SqliteStore

    return SqliteStore(rag.database)


def open_embedder(configuration: Configuration) -> Embedder:
    """Create the configured or the shipped embedder; its weights are loaded at first use.

    Raises:
        ConfigurationError: a package or the model is missing.
    """
    missing = [name for name in _REQUIRED_PACKAGES if find_spec(name) is None]
    if missing:
        raise ConfigurationError(
            f"no embedder can be loaded: {', '.join(missing)} is not installed",
            hint="install the missing package, or set `strategy: preload`",
        )
    from rag_assets.models.embedding.local import OnnxEmbedder

    folder = configuration.rag.model.value
    if folder is not None:
        if configuration.has_project_model:
            require_published_model(folder, configuration.rag.model.origin)
        return OnnxEmbedder(folder, pooling=get_default_pooling(folder))
    for cached in find_cached_models(configuration.base.value, configuration.rag.allow.value):
        return OnnxEmbedder(cached, pooling="cls")
    return OnnxEmbedder()


def require_published_model(folder: Path, origin: str) -> None:
    """Refuse a model that a project's file names if the checksums of the model are not published.

    Raises:
        ConfigurationError: the checksums are unknown.
    """
    from rag_assets.models.embedding.model_folder import describe_folder

    if not describe_folder(folder, pooling=get_default_pooling(folder)).is_known:
        raise ConfigurationError(
            f"{origin}: the model in {folder} does not have the checksums of a published model",
            hint="a project's file can use only published models; set your own model as"
            " `rag: {model: …}` in ~/.config/swebash/agents.yaml, or allow its folder there as"
            " `rag: {allow: […]}`",
        )


def get_default_pooling(folder: Path) -> Literal["cls"] | None:
    """Return the pooling of bge-small, whose files may not state it; None for other models."""
    return "cls" if _BGE in str(folder) else None


def find_cached_models(base: Path, allowed: Sequence[Path]) -> Iterator[Path]:
    """Yield the usable folders of bge-small-en-v1.5 in the cache of another program.

    The cache may have come with a repository: files that differ from the published files are
    used only in folders that the user allows.
    """
    from rag_assets.models.embedding.model_folder import describe_folder

    for holder in sorted((base / _CACHE_FOLDER).glob(f"*{_BGE}*")):
        for weights in sorted(holder.rglob("*.onnx")):
            folder = weights.parent
            # A download may be incomplete; then the shipped model is used.
            with suppress(ConfigurationError):
                if describe_folder(folder, pooling="cls").is_known or is_inside(folder, allowed):
                    yield folder


_K1: Final = 1.2
_B: Final = 0.75
"""The two constants of BM25."""
_EXTRA_CANDIDATES: Final = 50
"""Number of passages of each ranking that are combined, in addition to the requested number.

All other passages are dropped.
"""


def fuse_rankings(
    query: str,
    words: WordIndex,
    nearest: Sequence[SearchResult],
    top_k: int,
    *,
    reading: Reading = "known",
) -> list[SearchResult]:
    """Order passages by vectors and words together; scores stay cosines.

    Args:
        nearest: all passages of the index, ranked by vector.
        reading: how well the embedder understands the question; if "unread", only words count.
    """
    by_id = {result.chunk.id: result for result in nearest}
    terms = tuple(parse_query_words(query).terms)
    scores = words.score_passages(terms)
    limit = top_k + _EXTRA_CANDIDATES
    best = next(iter(scores), None)
    coverage = words.compute_term_coverage(best, terms) if best is not None else 0.0
    cosines = {result.chunk.id: result.score for result in nearest[:limit]}
    top_scores = dict(islice(scores.items(), limit))
    weight = coverage * compare_peaks(top_scores, cosines)
    if reading == "foreign":
        weight *= FOREIGN_WORD_FACTOR
    votes = [normalize_word_scores(top_scores, weight=weight)]
    order = fuse(votes if reading == "unread" else [normalize_cosines(cosines), *votes])
    # If the index was replaced between the two rankings, a passage may be missing from one.
    return [by_id[id_] for id_ in order if id_ in by_id][:top_k]


@dataclass(frozen=True, slots=True)
class WordIndex:
    """An inverted index of passages.

    Attributes:
        positions: for each term, the passages that contain it.
        counts: for each term, how often each of these passages contains it.
        analyses: the text analyses used for the passages; they decide the forms of query words.
    """

    ids: Sequence[str]
    lengths: array[int]
    positions: dict[str, array[int]]
    counts: dict[str, array[int]]
    analyses: frozenset[str]

    @classmethod
    def from_passages(cls, passages: Iterable[DocChunk]) -> WordIndex:
        """Build the index of the words in passages."""
        index = cls([], array("I"), {}, {}, frozenset())
        ids: list[str] = []
        analyses: set[str] = set()
        for position, passage in enumerate(passages):
            analysis = choose_analysis(passage.content, None)
            analyses.add(analysis)
            terms = compute_lexical_terms(passage.content, analysis).split()
            ids.append(passage.id)
            index.lengths.append(len(terms))
            for term, count in Counter(terms).items():
                index.positions.setdefault(term, array("I")).append(position)
                index.counts.setdefault(term, array("I")).append(count)
        return cls(ids, index.lengths, index.positions, index.counts, frozenset(analyses))

    def score_passages(self, words: Iterable[str]) -> dict[str, float]:
        """Return the BM25 score of each passage with any of the words, best first, ties by id.

        Source: Robertson and Zaragoza, The Probabilistic Relevance Framework, 2009.
        """
        total = len(self.ids)
        mean = sum(self.lengths) / max(1, total) or 1.0
        scores: dict[int, float] = {}
        for word in sorted(words):
            counts = self._count_word_by_passage(word)
            weight = math.log(1 + (total - len(counts) + 0.5) / (len(counts) + 0.5))
            for position, count in counts.items():
                saturation = _K1 * (1 - _B + _B * self.lengths[position] / mean)
                score = weight * count * (_K1 + 1) / (count + saturation)
                scores[position] = scores.get(position, 0.0) + score
        order = sorted((-round(score, 9), self.ids[position]) for position, score in scores.items())
        return {id_: -score for score, id_ in order}

    def compute_term_coverage(self, id_: str, words: Collection[str]) -> float:
        """Return the share of these words that occur in a passage, from 0 to 1."""
        position = self.ids.index(id_)
        return sum(position in self._count_word_by_passage(word) for word in words) / len(words)

    def _count_word_by_passage(self, word: str) -> dict[int, int]:
        """Return how often a word occurs in each passage that contains it.

        If a word has several forms, only the form that is most frequent in the passage counts.
        """
        counts: dict[int, int] = {}
        for form, analyses in build_forms(word).items():
            if form in self.positions and not self.analyses.isdisjoint(analyses):
                for at, count in zip(self.positions[form], self.counts[form], strict=True):
                    counts[at] = max(count, counts.get(at, 0))
        return counts
