"""Indexes of agents: open, build, refresh and search them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np

from rag_assets.common.batches import batched
from rag_assets.common.errors import ConfigurationError, DamagedIndex, InputRejected
from rag_assets.models.embedding.coverage import reading_of
from rag_assets.models.embedding.protocol import Embedder, Purpose
from rag_assets.retrieval.contexts import results_text
from rag_assets.storage.index.common_words import sentence_language
from rag_assets.systems.agent_docs.globs import Matches, expand, lies_below
from rag_assets.systems.agent_docs.hybrid import WordIndex, fused
from rag_assets.systems.agent_docs.passages import (
    Chunking,
    Mask,
    Passages,
    ProjectRules,
    fingerprint_of,
    is_doubtful,
    passages_of,
    unchanged,
)
from rag_assets.systems.agent_docs.settings import Configuration, Mode, RagSettings
from rag_assets.systems.agent_docs.stores import IndexState, PassageStore, SearchResult, Vectors
from rag_assets.systems.agent_docs.trust import Trust, Verdict, places_of

_TRIES: Final = 5
"""Of a search whose index is replaced meanwhile."""
_NEVER: Final = -1
_DOUBTS: Final[tuple[Verdict, ...]] = ("altered", "stale")


@dataclass(frozen=True, slots=True)
class IndexReport:
    """What ensuring an index did.

    Attributes:
        agent_id: of the agent.
        files: that are indexed.
        chunks: of the index.
        embedded: texts that were embedded now.
        dropped: passages of the whole index that held nothing but a credential.
        secrets: files with masked credentials, and the rules that found these.
        built: whether the index was replaced; False: it was current.
        left_out: files that are not indexed, and why.
        empty: patterns that match no file.
        seconds: that it took.
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
    """Indexes of agents in a store.

    Args:
        embedder: makes vectors.
        store: keeps them.
        chunking: limits of passages.
        mask: finds credentials; by default with the rules of the project.
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
        self._embedder = embedder
        self._store = store
        self._chunking = chunking or Chunking()
        self._mask = mask or ProjectRules()
        self._trust = trust or Trust()
        self._words: dict[str, tuple[str, WordIndex]] = {}
        self._matches: dict[str, Matches] = {}
        self._doubts: dict[str, Verdict] = {}

    @property
    def store(self) -> PassageStore:
        """The store of the indexes."""
        return self._store

    def ensure_index(
        self, agent_id: str, doc_sources: Sequence[str], base_dir: Path
    ) -> IndexReport:
        """Build an agent's index, or leave it as it is where its files have not changed.

        The former index answers until the new one replaces it in one step. Only passages without a
        vector are embedded; another process that builds is waited for.

        Args:
            agent_id: of the agent.
            doc_sources: globs.
            base_dir: of relative ones.

        Raises:
            ConfigurationError: the globs visit too many files.
            ProviderError: the embedder failed; the former index stays.
        """
        try:
            return self._ensured(agent_id, doc_sources, base_dir)
        except DamagedIndex:
            # The store, which has seen the damage, sets it aside before the next build.
            return self._ensured(agent_id, doc_sources, base_dir)

    def _ensured(self, agent_id: str, doc_sources: Sequence[str], base_dir: Path) -> IndexReport:
        started = time.monotonic()
        looked, matches = time.time_ns(), self._expanded(agent_id, doc_sources, base_dir)
        state = self._state(agent_id)
        if state is None or not self._is_current(state, matches):
            with self._store.building(agent_id):
                # While another one built, files may have changed.
                looked, matches = time.time_ns(), self._expanded(agent_id, doc_sources, base_dir)
                state = self._state(agent_id)
                if state is None or not self._is_current(state, matches):
                    return self._build(agent_id, matches, looked, state, started)
        return _report(agent_id, state, matches, started)

    def is_current(self, agent_id: str, doc_sources: Sequence[str], base_dir: Path) -> bool:
        """Whether an index has what its files hold, as far as their sizes and times tell."""
        state = self._state(agent_id)
        matches = self._expanded(agent_id, doc_sources, base_dir)
        return state is not None and self._is_current(state, matches)

    def is_doubted(self, agent_id: str) -> bool:
        """Return whether a search met a passage that is not what its file holds.

        Such a passage is not answered. The next ensure_index reads all files.
        """
        return agent_id in self._doubts

    def answers(self, agent_id: str) -> bool:
        """Whether an agent has an index whose vectors are of this embedder."""
        state = self._state(agent_id)
        return state is not None and state.embedder_id == self._embedder.embedder_id

    def search(
        self,
        agent_id: str,
        query: str,
        top_k: int = 5,
        *,
        mode: Mode = "knn",
        min_score: float | None = None,
    ) -> list[SearchResult]:
        """The passages of an agent that answer a question, best first.

        Args:
            agent_id: of the agent; without an index of this embedder nothing is found.
            query: the question.
            top_k: how many at most.
            mode: "hybrid" finds exact names and flags by their words as well; scores stay cosines.
            min_score: cosine below which a passage is left out, in both modes.

        Raises:
            InputRejected: the question is empty.
            ProviderError: the embedder failed.
            DamagedIndex: the index cannot be read; ensure_index builds it again.
        """
        state = self._sealed_state(agent_id)
        if state is None or state.embedder_id != self._embedder.embedder_id:
            return []
        vector = asyncio.run(self._embedded([query], "query"))[0]
        if vector is None:
            raise InputRejected("the question is empty or has no readable content")

        def near(count: int) -> list[SearchResult]:
            found = self._store.search(vector, agent_id, count)
            return [one for one in found if min_score is None or one.score >= min_score]

        def rank(state: IndexState, count: int) -> list[SearchResult]:
            if mode == "knn":
                return near(count)
            words = self._words.get(agent_id)
            if words is None or words[0] != state.fingerprint:
                words = (state.fingerprint, WordIndex.of(self._store.chunks(agent_id)))
                self._words[agent_id] = words
            nearest = near(len(state.text_hashes))
            reading = reading_of(self._embedder, query, sentence_language(query))
            return fused(query, words[1], nearest, count, reading=reading)

        for _ in range(_TRIES):
            found, doubt = self._true_results(agent_id, state, rank, top_k)
            # A builder may have replaced the index after its state was read.
            newer = state if doubt is None else self._sealed_state(agent_id)
            if newer is None or newer is state:
                break
            state = newer
        if doubt is not None:
            self._doubts[agent_id] = doubt
        return found

    def _true_results(
        self,
        agent_id: str,
        state: IndexState,
        rank: Callable[[IndexState, int], list[SearchResult]],
        top_k: int,
    ) -> tuple[list[SearchResult], Verdict | None]:
        """Return the first passages that are what their files hold, and why others are not."""
        count, doubts = top_k, set[Verdict]()
        matches = self._matches.get(agent_id)
        while True:
            ranked = rank(state, count)
            paths = [one.chunk.source_path for one in ranked]
            places = None if matches is None else places_of(matches, paths)
            verdicts = [self._trust.judge(state, one.chunk, places) for one in ranked]
            doubts.update(verdicts)
            found = [one for one, is_ in zip(ranked, verdicts, strict=True) if is_ == "true"]
            if len(found) >= top_k or len(ranked) < count:
                doubt = next((one for one in _DOUBTS if one in doubts), None)
                return found[:top_k], doubt
            count *= 2

    def _expanded(self, agent_id: str, doc_sources: Sequence[str], base_dir: Path) -> Matches:
        matches = self._matches[agent_id] = expand(doc_sources, base_dir)
        return matches

    def _sealed_state(self, agent_id: str) -> IndexState | None:
        """Return the state of an index; None for one that no process of this user sealed."""
        state = self._store.state(agent_id)
        if state is None or self._doubts.get(agent_id) == "altered":
            return None
        return state if self._trust.is_sealed(agent_id, state) else None

    def _state(self, agent_id: str) -> IndexState | None:
        """Return a sealed state; with a doubt, the times of its files are not believed."""
        state = self._sealed_state(agent_id)
        if state is None or agent_id not in self._doubts:
            return state
        files = tuple(replace(one, mtime_ns=_NEVER) for one in state.files)
        return replace(state, fingerprint="", files=files)

    def _is_current(self, state: IndexState, matches: Matches) -> bool:
        """Whether an index is of these files, unless one of them may have changed unnoticed."""
        return (
            self._is_of_recipe(state)
            and state.fingerprint == fingerprint_of(matches.files)
            and not any(is_doubtful(one, state.looked_ns) for one in state.files)
        )

    def _is_of_recipe(self, state: IndexState) -> bool:
        same_model = state.embedder_id == self._embedder.embedder_id
        return same_model and state.recipe == self._chunking.recipe

    def _build(
        self,
        agent_id: str,
        matches: Matches,
        looked: int,
        former: IndexState | None,
        started: float,
    ) -> IndexReport:
        of_recipe = former if former is not None and self._is_of_recipe(former) else None
        same = None if of_recipe is None else unchanged(matches.files, of_recipe)
        fingerprint = fingerprint_of(matches.files)
        if of_recipe is not None and same is not None:
            state = replace(of_recipe, fingerprint=fingerprint, looked_ns=looked, files=same)
            self._store.touch(agent_id, self._trust.seal(state))
            self._doubts.pop(agent_id, None)
            return _report(agent_id, state, matches, started)
        known = None if of_recipe is None else (of_recipe, self._store.chunks(agent_id))
        passages = passages_of(agent_id, matches.files, self._chunking, self._mask, known)
        vectors, embedded = self._vectors(agent_id, passages, former)
        chunks = [one for one in passages.chunks if passages.text_hashes[one.id] in vectors]
        state = IndexState(
            fingerprint,
            self._embedder.embedder_id,
            self._chunking.recipe,
            looked,
            passages.files,
            passages.left_out,
            {one.id: passages.text_hashes[one.id] for one in chunks},
            {one.id: passages.digests[one.id] for one in chunks},
        )
        rows = [vectors[passages.text_hashes[one.id]] for one in chunks]
        empty = np.empty((0, self._embedder.dimensions), dtype=np.float32)
        vectors_of_all = np.stack(rows) if rows else empty
        self._store.replace(agent_id, chunks, vectors_of_all, self._trust.seal(state))
        self._doubts.pop(agent_id, None)
        return _report(agent_id, state, matches, started, embedded=embedded, built=True)

    def _vectors(
        self, agent_id: str, passages: Passages, former: IndexState | None
    ) -> tuple[dict[str, Vectors], int]:
        """The vectors of passages by hash, and how many had to be made; some texts have none."""
        known: dict[str, Vectors] = {}
        if former is not None and former.embedder_id == self._embedder.embedder_id:
            hashes = former.text_hashes
            rows = self._store.vectors(agent_id)
            known = {hashes[id_]: row for id_, row in rows.items() if id_ in hashes}
        new = {key: text for key, text in passages.texts.items() if key not in known}
        made = asyncio.run(self._embedded(list(new.values()), "document")) if new else []
        known |= {key: row for key, row in zip(new, made, strict=True) if row is not None}
        return known, len(new)

    async def _embedded(self, texts: Sequence[str], purpose: Purpose) -> list[Vectors | None]:
        """A vector for each text; None for those that never have one."""
        limits = self._embedder.limits
        slots = asyncio.Semaphore(limits.concurrency)

        async def embed(batch: Sequence[str]) -> list[Vectors | None]:
            async with slots:
                try:
                    return list((await self._embedder.embed(batch, purpose=purpose)).vectors)
                except InputRejected:
                    if len(batch) == 1:
                        return [None]
            return [row for text in batch for row in await embed([text])]

        try:
            batches = [embed(batch) for batch in batched(texts, limits.texts)]
            return [row for rows in await asyncio.gather(*batches) for row in rows]
        finally:
            await self._embedder.close()


def _report(
    agent_id: str,
    state: IndexState,
    matches: Matches,
    started: float,
    *,
    embedded: int = 0,
    built: bool = False,
) -> IndexReport:
    return IndexReport(
        agent_id,
        files=len(state.files) - len(state.left_out),
        chunks=len(state.text_hashes),
        embedded=embedded,
        dropped=sum(one.dropped for one in state.files),
        secrets={one.path: one.rules for one in state.files if one.rules},
        built=built,
        left_out=state.left_out,
        empty=matches.empty,
        seconds=time.monotonic() - started,
    )


def as_text(results: Sequence[SearchResult]) -> str:
    """Passages between markers; a sentence if there are none."""
    return results_text(
        (number, one.score, one.chunk.source_path, one.chunk.content)
        for number, one in enumerate(results, start=1)
    )


def as_record(result: SearchResult) -> dict[str, Any]:
    """A passage with its score, for JSON."""
    return asdict(result.chunk) | {"score": result.score}


_CACHE: Final = ".fastembed_cache"
_BGE: Final = "bge-small-en-v1.5"
_NEEDED: Final = ("onnxruntime", "tokenizers")


def open_manager(configuration: Configuration) -> RagIndexManager:
    """The manager of indexes that a configuration describes.

    Raises:
        ConfigurationError: there is no embedder to be loaded.
    """
    rag = configuration.rag
    chunking = Chunking(rag.chunk_size.value, rag.chunk_overlap.value)
    return RagIndexManager(open_embedder(configuration), open_store(rag), chunking)


def open_store(rag: RagSettings) -> PassageStore:
    """The store that settings name; nothing is written before there is an index."""
    path = rag.path.value
    if rag.store.value == "memory":
        from rag_assets.systems.agent_docs.stores import MemoryStore

        return MemoryStore()
    if rag.store.value == "file":
        from rag_assets.systems.agent_docs.file_store import FileStore

        return FileStore(path)
    from rag_assets.systems.agent_docs.sqlite_store import SqliteStore

    return SqliteStore(rag.database)


def open_embedder(configuration: Configuration) -> Embedder:
    """The embedder that a configuration names, or the shipped one; its weights are not loaded yet.

    Raises:
        ConfigurationError: a package or the model is missing.
    """
    missing = [name for name in _NEEDED if find_spec(name) is None]
    if missing:
        raise ConfigurationError(
            f"no embedder can be loaded: {', '.join(missing)} is not installed",
            hint="install it, or set `strategy: preload`",
        )
    from rag_assets.models.embedding.local import OnnxEmbedder

    given = configuration.rag.model.value
    if given is not None:
        if configuration.has_projects_model:
            require_known(given, configuration.rag.model.origin)
        return OnnxEmbedder(given, pooling=pooling_of(given))
    for folder in cached_models(configuration.base.value, configuration.rag.allow.value):
        return OnnxEmbedder(folder, pooling="cls")
    return OnnxEmbedder()


def require_known(folder: Path, origin: str) -> None:
    """Refuse a model that a project's file names, unless it is a published one.

    Raises:
        ConfigurationError: its files are not those of a model that is known by its checksums.
    """
    from rag_assets.models.embedding.model_folder import describe_folder

    if not describe_folder(folder, pooling=pooling_of(folder)).is_known:
        raise ConfigurationError(
            f"{origin}: the model in {folder} is of nobody who is known, by its checksums",
            hint="a project's file may name published models only; name yours as `rag: {model: …}`"
            " in ~/.config/swebash/agents.yaml, or allow its folder there as `rag: {allow: […]}`",
        )


def pooling_of(folder: Path) -> Literal["cls"] | None:
    """How a model's vectors are made, where its folder may not say it."""
    return "cls" if _BGE in str(folder) else None


def cached_models(base: Path, allowed: Sequence[Path]) -> Iterator[Path]:
    """Yield the usable folders of bge-small-en-v1.5 in a cache that another program filled.

    The cache may have come with a repository: files that are not the published ones are used only
    from where the user allows it.
    """
    from rag_assets.models.embedding.model_folder import describe_folder

    for holder in sorted((base / _CACHE).glob(f"*{_BGE}*")):
        for weights in sorted(holder.rglob("*.onnx")):
            folder = weights.parent
            # A download may be unfinished; the shipped model is always there.
            with suppress(ConfigurationError):
                if describe_folder(folder, pooling="cls").is_known or lies_below(folder, allowed):
                    yield folder
