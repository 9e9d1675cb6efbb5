"""Citations: the passages that an answer cites, each with the block that its claims are about.

Claims are known only after the answer is written. A model may word a claim differently than the
passage. If the words of the claim do not identify the block, a local model compares the meaning of
the claim with each block.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from rag_assets.common.errors import RagAssetsError
from rag_assets.ingest.chunking.location import location_fields
from rag_assets.models.embedding.protocol import Embedder
from rag_assets.search.answers import Citation
from rag_assets.search.blocks import BlockPart, excerpt_of_block, is_clear, parts_of, url_of
from rag_assets.search.citation_markers import blank_markers
from rag_assets.search.citations import verify_citations
from rag_assets.search.model import Hit

_MOST_BLOCKS: Final = 64
"""Maximum blocks of a passage that are compared by meaning; a passage has about 1,200 tokens at
most."""
_MOST_CHARACTERS: Final = 1_000


@dataclass(frozen=True, slots=True)
class CitedHit:
    """A passage that an answer cites.

    Attributes:
        hit: the passage.
        claim: the sentences that cite it.
        parts: the blocks of the passage.
    """

    hit: Hit
    claim: str
    parts: tuple[BlockPart, ...]

    @property
    def is_open(self) -> bool:
        """Return whether words leave undecided which block the claim is about."""
        return 1 < len(self.parts) <= _MOST_BLOCKS and not is_clear(self.parts)

    def texts(self) -> list[str]:
        """Return the claim and the blocks, each cut to the length that is compared."""
        parts = (self.hit.text[part.start : part.end] for part in self.parts)
        return [text[:_MOST_CHARACTERS].strip() or "-" for text in (self.claim, *parts)]


def cited_hits(answer: str, hits: Sequence[Hit]) -> list[CitedHit]:
    """Return the passages that an answer cites, in the order of the hits.

    Args:
        answer: an answer that cites only numbers that exist.
        hits: passages that could be cited.
    """
    claims: dict[int, list[str]] = {}
    for sentence in verify_citations(answer, hits).sentences:
        for number in sentence.cites:
            claims.setdefault(number, []).append(blank_markers(sentence.text))
    found = [(hit, " ".join(claims[hit.number])) for hit in hits if hit.number in claims]
    return [
        CitedHit(
            hit,
            claim,
            parts_of(hit.text, claim, hit.blocks, offset=hit.start, language=hit.language),
        )
        for hit, claim in found
    ]


async def nearness(
    cited: Sequence[CitedHit], model: Callable[[], Embedder]
) -> Mapping[int, Sequence[float]]:
    """Return, by citation number, the cosines of claims and blocks where words do not decide.

    The result is empty if the model cannot be used, because that must not make the answer fail.
    """
    asked = [one for one in cited if one.is_open]
    texts = list(dict.fromkeys(text for one in asked for text in one.texts()))
    if not texts:
        return {}
    try:
        # Run in a thread: the first call loads the model.
        embedder = await asyncio.to_thread(model)
        vectors = (await embedder.embed(texts)).vectors
    except RagAssetsError:
        return {}
    place = {text: at for at, text in enumerate(texts)}
    found = {}
    for one in asked:
        claim, *parts = (vectors[place[text]] for text in one.texts())
        found[one.hit.number] = [float(claim @ part) for part in parts]
    return found


def citation_of(cited: CitedHit, cosines: Sequence[float] | None = None) -> Citation:
    """Return the citation of a passage.

    Args:
        cited: the passage.
        cosines: cosines between its claim and each of its blocks, if known.
    """
    hit = cited.hit
    block_id, shown = excerpt_of_block(
        hit.text, cited.claim, cited.parts, cosines, language=hit.language
    )
    return Citation(
        number=hit.number,
        uri=hit.uri,
        document_id=hit.document_id,
        title=hit.title,
        **location_fields(hit),
        excerpt=shown,
        source_type=hit.source_type,
        source_id=hit.source_id,
        page_uuid=hit.page_uuid,
        block_id=block_id,
        url=url_of(hit.uri, block_id),
        breadcrumb=hit.breadcrumb,
    )
