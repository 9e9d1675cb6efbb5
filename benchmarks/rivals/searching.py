"""Search the passages of judged sets with other programs, each in its own environment.

    python -m benchmarks.rivals.searching NAME FOLDER...

A folder holds what `benchmarks.fusion.contest` wrote for a set: passages, questions, and for each
question its nearest passages by exact cosine, so that ranking like a vector store needs no vectors.
If the folder also has the vectors, the framework's own vector store is searched, and its time
counts. Writes NAME.json there: the numbers of the first ten passages of each question, and its
milliseconds.

- bm25s: BM25 with the Snowball stemmer and the stop words of the set's language, if they exist;
  bigrams of characters in languages without spaces.
- langchain: EnsembleRetriever over BM25Retriever and InMemoryVectorStore, with its weights and its
  constant. It returns four passages of each by default: here ten, as ten are judged.
- llamaindex: QueryFusionRetriever ("reciprocal_rerank", one query) over BM25Retriever, with the
  stemmer and stop words of the language if its package has both, and VectorStoreIndex.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

DEPTH: Final = 10
_LETTERS: Final = r"[\w\u064b-\u065f\u0900-\u0963\u0e31-\u0e4e]"
"""Letters and the vowel signs of Arabic, Devanagari and Thai, which `\\w` does not match."""
_WORDS: Final = f"(?u){_LETTERS}{{2,}}"
_BIGRAMS: Final = rf"(?u)(?=({_LETTERS}{{2}}))"
_WITHOUT_SPACES: Final = frozenset({"ja", "th", "zh"})
_STEMMED: Final = {
    "ar": "arabic",
    "de": "german",
    "el": "greek",
    "en": "english",
    "es": "spanish",
    "fr": "french",
    "hi": "hindi",
    "it": "italian",
    "ro": "romanian",
    "ru": "russian",
    "tr": "turkish",
}
"""Snowball's stemmers, by language of the judged sets."""

Search = Callable[[str], Sequence[int]]
"""Returns the numbers of the first passages for a question."""


class JudgedTask:
    """The texts of a judged set, and the nearest passages of each question.

    Args:
        folder: contains `texts.json`, and `vectors.npz` if the vector store is to be searched.
    """

    def __init__(self, folder: Path) -> None:
        texts = json.loads((folder / "texts.json").read_text(encoding="utf-8"))
        self.language: str = texts["language"]
        self.passages: Sequence[str] = texts["passages"]
        self.questions: Sequence[str] = texts["questions"]
        self._nearest = dict(zip(self.questions, texts["nearest"], strict=True))
        self._vectors: dict[str, list[float]] = {}
        path = folder / "vectors.npz"
        if path.is_file():
            with np.load(path) as arrays:
                vectors = [*arrays["passages"].tolist(), *arrays["questions"].tolist()]
            self._vectors = dict(zip([*self.passages, *self.questions], vectors, strict=True))

    @property
    def has_vectors(self) -> bool:
        """Return whether the framework's vector store can be searched."""
        return bool(self._vectors)

    def find_nearest(self, question: str) -> Sequence[int]:
        """Return the numbers of the ten passages with the highest cosines."""
        nearest: Sequence[int] = self._nearest[question][:DEPTH]
        return nearest

    def get_vector(self, text: str) -> list[float]:
        """Return the embedding of a text of the set."""
        return self._vectors[text]


def search_bm25s(task: JudgedTask) -> Search:
    """Index the passages with bm25s; return its search."""
    import bm25s

    options: dict[str, Any] = {
        "token_pattern": _BIGRAMS if task.language in _WITHOUT_SPACES else _WORDS,
        "stopwords": _get_stop_words(task.language),
        "stemmer": _build_stemmer(task.language),
        "show_progress": False,
    }
    retriever = bm25s.BM25()
    retriever.index(bm25s.tokenize(list(task.passages), **options), show_progress=False)

    def search(question: str) -> Sequence[int]:
        terms = bm25s.tokenize([question], **options)
        numbers, scores = retriever.retrieve(terms, k=DEPTH, show_progress=False)
        return [int(at) for at, score in zip(numbers[0], scores[0], strict=True) if score > 0]

    return search


def search_langchain(task: JudgedTask) -> Search:
    """Index the passages with LangChain; return its search."""
    from langchain_classic.retrievers import EnsembleRetriever
    from langchain_community.retrievers import BM25Retriever
    from langchain_core.documents import Document
    from langchain_core.embeddings import Embeddings
    from langchain_core.retrievers import BaseRetriever
    from langchain_core.vectorstores import InMemoryVectorStore

    class Nearest(BaseRetriever):
        def _get_relevant_documents(self, query: str, **_: Any) -> list[Document]:
            return [documents[at] for at in task.find_nearest(query)]

    class Known(Embeddings):
        def embed_documents(self, texts: list[str]) -> list[list[float]]:
            return [task.get_vector(text) for text in texts]

        def embed_query(self, text: str) -> list[float]:
            return task.get_vector(text)

    documents = [Document(text, metadata={"at": at}) for at, text in enumerate(task.passages)]
    words = BM25Retriever.from_documents(documents, k=DEPTH)
    vectors: Any = Nearest()
    if task.has_vectors:
        store = InMemoryVectorStore.from_documents(documents, Known())
        vectors = store.as_retriever(search_kwargs={"k": DEPTH})
    ensemble = EnsembleRetriever(retrievers=[words, vectors])
    return lambda question: [found.metadata["at"] for found in ensemble.invoke(question)][:DEPTH]


def search_llamaindex(task: JudgedTask) -> Search:
    """Index the passages with LlamaIndex; return its search."""
    from llama_index.core import VectorStoreIndex
    from llama_index.core.base.embeddings.base import BaseEmbedding
    from llama_index.core.llms import MockLLM
    from llama_index.core.retrievers import BaseRetriever, QueryFusionRetriever
    from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode
    from llama_index.retrievers.bm25 import BM25Retriever

    class Nearest(BaseRetriever):
        def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
            nearest = enumerate(task.find_nearest(query_bundle.query_str))
            return [NodeWithScore(node=nodes[at], score=1.0 - rank / 100) for rank, at in nearest]

    class Known(BaseEmbedding):
        def _get_query_embedding(self, query: str) -> list[float]:
            return task.get_vector(query)

        async def _aget_query_embedding(self, query: str) -> list[float]:
            return task.get_vector(query)

        def _get_text_embedding(self, text: str) -> list[float]:
            return task.get_vector(text)

    nodes = [TextNode(id_=str(at), text=text) for at, text in enumerate(task.passages)]
    vectors: Any = Nearest()
    if task.has_vectors:
        index = VectorStoreIndex(nodes, embed_model=Known())
        vectors = index.as_retriever(similarity_top_k=DEPTH)
    stemmer = _build_stemmer(task.language)
    words = BM25Retriever.from_defaults(
        nodes=nodes,
        similarity_top_k=DEPTH,
        stemmer=stemmer,
        language=_get_stop_words(task.language) if stemmer else [],
        skip_stemming=stemmer is None,
    )
    fusion = QueryFusionRetriever(
        [vectors, words],
        llm=MockLLM(),
        similarity_top_k=DEPTH,
        num_queries=1,
        mode="reciprocal_rerank",
        use_async=False,
    )
    return lambda question: [int(found.node.node_id) for found in fusion.retrieve(question)]


def _build_stemmer(language: str) -> Any:
    """Return the Snowball stemmer of a language; None if there is none."""
    import Stemmer

    return Stemmer.Stemmer(_STEMMED[language]) if language in _STEMMED else None


def _get_stop_words(language: str) -> Sequence[str]:
    """Return bm25s's stop words for a language; empty if it has none."""
    from bm25s import stopwords

    name = "EN" if language == "en" else _STEMMED.get(language, "").upper()
    words: Sequence[str] = getattr(stopwords, f"STOPWORDS_{name}", ())
    return list(words)


_SEARCHES: Final[Mapping[str, Callable[[JudgedTask], Search]]] = {
    "bm25s": search_bm25s,
    "langchain": search_langchain,
    "llamaindex": search_llamaindex,
}


def main(name: str, folders: Sequence[Path]) -> None:
    """Index the passages of each set, and ask all of its questions once."""
    for folder in folders:
        task = JudgedTask(folder)
        search = _SEARCHES[name](task)
        search(task.questions[0])  # loads what the first question needs, outside the timing
        rankings: list[Sequence[int]] = []
        milliseconds: list[float] = []
        for question in task.questions:
            began = time.perf_counter()
            rankings.append(search(question))
            milliseconds.append((time.perf_counter() - began) * 1_000)
        answer = {"rankings": rankings, "milliseconds": milliseconds}
        (folder / f"{name}.json").write_text(json.dumps(answer))


if __name__ == "__main__":
    main(sys.argv[1], [Path(folder) for folder in sys.argv[2:]])
