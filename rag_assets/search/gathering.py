"""Gathering: merge the candidates and passages of a search that become one hit.

- A block and the passage that contains it become one hit. A block matches a question more
  precisely, but rarely holds the full answer.
- Equal texts become one hit, as do near copies of a passage. But a figure, a negation or a name
  makes a difference to a reader, so passages that differ in one of these stay separate, however
  similar their words are.
- Passages of one document that overlap or adjoin become one hit with their joint text.

One document gets at most two of the first five positions if another document is near.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, TypeVar

from rag_assets.ingest.chunking.model import LOCATION_FIELDS
from rag_assets.search.near_copies import Wording, have_same_meaning, may_be_copies
from rag_assets.search.progress import DistinctText, Passage
from rag_assets.storage.index.model import SYMBOL, Candidate
from rag_assets.tenants.model import Tenant
from rag_assets.tenants.profiles import get_profile

MAX_PARTS: Final = 3
"""Maximum passages of a hit, so its text has at most three times the tokens of a passage."""
_FIRST_PLACES: Final = 5
_MAX_PER_DOCUMENT: Final = 2
"""Maximum hits of one document among the first positions."""
_MAX_BLANKS: Final = 16
"""Maximum blanks between two adjacent chunks. Chunks start and end with words."""
_MAX_COMPARED_IN_PAIRS: Final = 200
"""Maximum number of passages that are compared in pairs; for more, an index of shingles is
faster."""
_YEAR: Final = re.compile(r"(?<!\d)(?:19|20)\d\d(?!\d)")

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class BlockGroups:
    """Candidates grouped into hits.

    Attributes:
        shown: by candidate id, the candidate that is shown for it, mostly itself.
        blocks: by the id of a shown passage, the best block in it.
    """

    shown: Mapping[str, Candidate]
    blocks: Mapping[str, Candidate]


def group_blocks(candidates: Sequence[Candidate]) -> BlockGroups:
    """Group candidates into hits; a block is its own hit if no passage that contains it was found.

    A ranking counts a passage at its own rank or the rank of its best block, whichever is higher,
    and the passage is shown. Many blocks of one long page would leave no room for other documents.
    """
    passages = {
        (candidate.document_id, candidate.index_key, candidate.ordinal): (at, candidate)
        for at, candidate in enumerate(candidates)
        if not candidate.within
    }
    shown: dict[str, Candidate] = {}
    blocks: dict[str, Candidate] = {}
    for candidate in candidates:
        version = candidate.document_id, candidate.index_key
        around = [passages[place] for n in candidate.within if (place := (*version, n)) in passages]
        shown[candidate.id] = (
            min(around, key=lambda neighbour: neighbour[0])[1] if around else candidate
        )
        if around:
            blocks.setdefault(shown[candidate.id].id, candidate)
    return BlockGroups(shown, blocks)


def merge_equal_texts(candidates: Sequence[Candidate]) -> list[DistinctText]:
    """Keep the first candidate of each text, with the uris of the other documents that have it.

    Among equally good candidates, one that is adjacent to a kept candidate wins, so that hits do
    not alternate between two copies of a document.

    If both a passage and blocks in it were found, the entry that ranks first stays: the passage
    without these blocks, or the block without this passage.
    """
    equal: dict[str, list[Candidate]] = {}
    for candidate in _drop_nested(candidates):
        equal.setdefault(candidate.text_key, []).append(candidate)
    distinct: list[DistinctText] = []
    kept: set[tuple[str, str, int]] = set()
    for same in equal.values():
        first = _choose_adjoining(same, kept) if len(same) > 1 else same[0]
        kept.add((first.document_id, first.index_key, first.ordinal))
        distinct.append(DistinctText(first, _list_other_uris(first, same) if len(same) > 1 else ()))
    return distinct


def _choose_adjoining(
    same: Sequence[Candidate], kept: Collection[tuple[str, str, int]]
) -> Candidate:
    """Return, of the candidates with the best score, the first that adjoins a kept candidate.

    If none does, return the first candidate.
    """
    for candidate in same:
        beside = {
            (candidate.document_id, candidate.index_key, candidate.ordinal + step)
            for step in (-1, 1)
        }
        if candidate.score == same[0].score and not beside.isdisjoint(kept):
            return candidate
    return same[0]


def _drop_nested(candidates: Sequence[Candidate]) -> Iterator[Candidate]:
    """Yield candidates, except those that contain or lie within a higher-ranked candidate."""
    enclosing_blocks: set[tuple[str, str, int]] = set()
    kept: set[tuple[str, str, int]] = set()
    for candidate in candidates:
        version = candidate.document_id, candidate.index_key
        around = [(*version, ordinal) for ordinal in candidate.within]
        own = (*version, candidate.ordinal)
        if own in enclosing_blocks or not kept.isdisjoint(around):
            continue
        kept.add(own)
        enclosing_blocks.update(around)
        yield candidate


def _list_other_uris(first: Candidate, others: Sequence[Candidate]) -> tuple[str, ...]:
    uris = dict.fromkeys(other.uri for other in others if other.uri)
    uris.pop(first.uri, None)
    return tuple(uris)


def gathers_passages(tenant: Tenant) -> bool:
    """Return whether passages of the same document are merged in a tenant's searches."""
    return not get_profile(tenant.profile).keeps_passages


def merges_copies(tenant: Tenant) -> bool:
    """Return whether near copies of a passage share one hit; in source code they do not."""
    return gathers_passages(tenant) and not tenant.reads_facts


def group_items(
    items: Sequence[_T],
    document_of: Callable[[_T], str],
    are_joined: Callable[[_T, _T], bool],
    *,
    max_groups: int,
) -> list[list[_T]]:
    """Return groups of joined items of one document, ordered by each group's first item.

    After `max_groups` groups, each further item becomes its own group.
    """
    groups: dict[int, list[_T]] = {}
    of_document: defaultdict[str, list[int]] = defaultdict(list)
    for number, item in enumerate(items):
        near = of_document[document_of(item)]
        beside = [
            at
            for at in (near if len(groups) <= max_groups else ())
            if any(are_joined(item, other) for other in groups[at])
        ]
        home = next((at for at in beside if len(groups[at]) < MAX_PARTS), None)
        if home is None:
            groups[number] = [item]
            near.append(number)
            continue
        groups[home].append(item)
        for other in beside:
            if other != home and len(groups[home]) + len(groups[other]) <= MAX_PARTS:
                groups[home] += groups.pop(other)
                near.remove(other)
    return [*groups.values()]


def spread_documents(
    items: Sequence[_T], document_of: Callable[[_T], str], scores: Sequence[float]
) -> list[_T]:
    """Reorder items so that at most two of the first five belong to the same document.

    An item of another document moves up only if it is near: its score may lie no farther below the
    fifth item's than the fifth's lies below the first's.
    """
    places = min(_FIRST_PLACES, len(items))
    if not places:
        return []
    cutoff = find_cutoff_near_best(scores)
    remaining = list(range(len(items)))
    chosen: list[int] = []
    counts: Counter[str] = Counter()
    while len(chosen) < places:
        fitting = (
            at
            for at in remaining
            if scores[at] >= cutoff and counts[document_of(items[at])] < _MAX_PER_DOCUMENT
        )
        next_item = next(fitting, remaining[0])
        remaining.remove(next_item)
        chosen.append(next_item)
        counts[document_of(items[next_item])] += 1
    return [items[at] for at in (*chosen, *remaining)]


def find_cutoff_near_best(scores: Sequence[float]) -> float:
    """Return the lowest score that is still near.

    It is as far below the fifth score as the fifth is below the first.
    """
    return 2 * scores[min(_FIRST_PLACES, len(scores)) - 1] - scores[0]


def is_crowded(items: Sequence[Passage]) -> bool:
    """Return whether one document has more than two of the first five positions."""
    counts = Counter(map(get_document_id, items[:_FIRST_PLACES]))
    return max(counts.values(), default=0) > _MAX_PER_DOCUMENT


def get_document_id(item: DistinctText | Passage) -> str:
    """Return the document id of a candidate or a passage."""
    return item.candidate.document_id


def are_neighbours(first: DistinctText, second: DistinctText) -> bool:
    """Return whether two candidates are consecutive passages, which will become one hit."""
    return (
        _get_version(first.candidate) == _get_version(second.candidate)
        and not (first.candidate.within or second.candidate.within)
        and abs(first.candidate.ordinal - second.candidate.ordinal) == 1
    )


def are_adjoining(first: Passage, second: Passage) -> bool:
    """Return whether two passages of one document version have only blanks between them."""
    return _count_overlap(first, second) is not None and _may_be_merged(first, second)


def are_overlapping(first: Passage, second: Passage) -> bool:
    """Return whether two passages of one document version overlap."""
    return (_count_overlap(first, second) or 0) > 0 and _may_be_merged(first, second)


def merge_passages(parts: Sequence[Passage]) -> Passage:
    """Return one passage with the joint text of all parts, from their first to last character.

    The result describes itself like the first, best part, except for its text and location.
    """
    best, ordered = parts[0], sorted(parts, key=_get_span)
    if len(ordered) == 1:
        return best
    first = ordered[0].fields
    text = first["text"]
    at = first["end"]
    before = ordered[0]
    for part in ordered[1:]:
        start, end = part.fields["start"], part.fields["end"]
        if end > at:
            text += _build_white_space(before, part, start - at) if start > at else ""
            text += part.fields["text"][max(at - start, 0) :]
            at, before = end, part
    fields = {
        **best.fields,
        **_cover_locations(ordered),
        "text": text,
        "start": first["start"],
        "end": at,
    }
    fields["context"] = first.get("context", "")  # The context belongs to the start of the text.
    fields["heading_path"] = _list_common_headings(
        [part.fields["heading_path"] for part in ordered]
    )
    blocks: dict[str, int] = {}
    for part in ordered:
        ids, starts = part.fields.get("block_id") or (), part.fields.get("block_starts") or ()
        for id_, start in zip(ids, starts, strict=True):
            blocks.setdefault(id_, start)
    if blocks:
        fields |= {"block_id": [*blocks], "block_starts": [*blocks.values()]}
    return replace(
        best,
        fields=fields,
        parts=tuple(ordered),
    )


def merge_near_copies(passages: Sequence[Passage], scores: Mapping[str, object]) -> list[Passage]:
    """Merge near copies from other documents into one passage, which then names these documents.

    Of two equally good passages, the newer one is shown. One without a score equals no other.
    """
    if len({get_document_id(passage) for passage in passages}) < 2:  # noqa: PLR2004 - a pair
        return list(passages)
    shown: list[Passage] = []
    wordings: list[Wording] = []
    places: defaultdict[tuple[object, ...], list[int]] = defaultdict(list)
    for passage in passages:
        wording = Wording(passage.fields["text"])
        # Near copies have at least one of these keys in common.
        keys: list[tuple[object, ...]] = [(_list_years(passage), passage.fields.get("context"))]
        if len(passages) > _MAX_COMPARED_IN_PAIRS:
            figures = frozenset(wording.figures.items())
            keys = [(*keys[0], figures, shingle) for shingle in wording.first_shingles]
        same = next(
            (
                at
                for at in sorted({at for key in keys for at in places[key]})
                if get_document_id(shown[at]) != get_document_id(passage)
                and may_be_copies(wordings[at], wording)
                and have_same_meaning(wordings[at], wording)
            ),
            None,
        )
        if same is not None:
            shown[same] = _merge_copies(shown[same], passage, scores)
            continue
        for key in keys:
            places[key].append(len(shown))
        shown.append(passage)
        wordings.append(wording)
    return shown


def _get_version(candidate: Candidate) -> tuple[str, str]:
    return candidate.document_id, candidate.index_key


def _get_span(passage: Passage) -> tuple[int, int]:
    return passage.fields["start"], passage.fields["end"]


def _may_be_merged(first: Passage, second: Passage) -> bool:
    """Return whether two passages may be merged into one hit.

    They must belong to the same version and the same sheet or slide, and have the same copies:
    otherwise the merged hit would name a copy that contains only part of its text.
    """
    fields, others = first.fields, second.fields
    return (
        _get_version(first.candidate) == _get_version(second.candidate)
        and {*first.also} == {*second.also}
        and all(fields.get(name) == others.get(name) for name in ("source_type", "sheet", "slide"))
        # A definition in source code always remains a separate hit.
        and not any(
            passage_fields.get("metadata", {}).get(SYMBOL) for passage_fields in (fields, others)
        )
    )


def _count_overlap(earlier: Passage, later: Passage) -> int | None:
    """Return the number of overlapping characters; None if other text may lie between passages."""
    first, second = earlier.fields, later.fields
    if _get_span(later) < _get_span(earlier):
        first, second = second, first
    gap = second["start"] - first["end"]
    if gap > _MAX_BLANKS or (gap > 0 and second["ordinal"] - first["ordinal"] != 1):
        return None
    if any(
        len(passage_fields["text"]) != passage_fields["end"] - passage_fields["start"]
        for passage_fields in (first, second)
    ):
        return None
    if gap >= 0:
        return 0
    common = min(-gap, len(second["text"]))
    at = second["start"] - first["start"]
    is_same = first["text"][at : at + common] == second["text"][:common]
    return common if is_same else None


def _build_white_space(before: Passage, after: Passage, count: int) -> str:
    """Return white space to put between two passages, with as many line ends as in the document."""
    last, first = before.fields.get("line_end"), after.fields.get("line_start")
    lines = count if last is None or first is None else max(first - last, 0)
    return ("\n" * min(lines, count)).ljust(count)


def _cover_locations(ordered: Sequence[Passage]) -> dict[str, Any]:
    """Return the location that covers all passages; they are in document order."""
    covered: dict[str, Any] = {}
    for name in LOCATION_FIELDS:
        values = [v for part in ordered if (v := part.fields.get(name)) is not None]
        pick = min if name.endswith("_start") else max if name.endswith("_end") else _get_first
        covered[name] = pick(values) if values else None
    return covered


def _get_first(values: Sequence[Any]) -> Any:
    return values[0]


def _list_common_headings(paths: Sequence[Sequence[str]]) -> list[str]:
    """Return the headings with which all paths start."""
    count = 0
    for headings in zip(*paths, strict=False):
        if len({*headings}) > 1:
            break
        count += 1
    return list(paths[0][:count])


def _list_years(passage: Passage) -> frozenset[str]:
    """Return the years in a document's title, headings and address."""
    fields = passage.fields
    named = (fields.get("title") or "", passage.candidate.uri, *fields["heading_path"])
    return frozenset(year for name in named for year in _YEAR.findall(name))


def _merge_copies(shown: Passage, other: Passage, scores: Mapping[str, object]) -> Passage:
    """Return one passage for two near copies; it also names the document of the other copy."""
    times = (other.fields.get("modified_at") or "", shown.fields.get("modified_at") or "")
    is_equal = shown.id in scores and scores.get(other.id) == scores[shown.id]
    first, second = (other, shown) if is_equal and times[0] > times[1] else (shown, other)
    other_uris = dict.fromkeys((*first.also, second.candidate.uri, *second.also))
    other_uris.pop(first.candidate.uri, None)
    return replace(first, also=tuple(uri for uri in other_uris if uri))
