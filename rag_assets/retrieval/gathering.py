"""Gathering: what a reader is shown of the passages that a search read.

Passages of one document that overlap or adjoin become one hit with the text of all of them, nearly
identical passages of several documents share a place, and one document has no more than two of the
first five places while another one is near.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, TypeVar

from rag_assets.ingest.chunking.location import LOCATION_FIELDS
from rag_assets.retrieval.duplicates import Distinct, Passage, Wording, are_alike
from rag_assets.storage.index.model import SYMBOL, Candidate
from rag_assets.tenants.model import Tenant
from rag_assets.tenants.profiles import profile_of

MOST_PARTS: Final = 3
"""Passages of a hit: its text has three times the tokens of a passage at most."""
_FIRST_PLACES: Final = 5
_MOST_OF_A_DOCUMENT: Final = 2
"""Of the first places."""
_MOST_BLANKS: Final = 16
"""Chunks begin and end with words: between two of them there may be so many blanks."""
_MOST_IN_PAIRS: Final = 200
"""Passages that are compared in pairs, which takes less time than to take each apart."""
_YEAR: Final = re.compile(r"(?<!\d)(?:19|20)\d\d(?!\d)")

_T = TypeVar("_T")


def is_gathered(tenant: Tenant) -> bool:
    """Return whether the passages of a tenant's searches are gathered at all."""
    return not profile_of(tenant.profile).keeps_passages


def is_spread(tenant: Tenant) -> bool:
    """Return whether near copies of documents share places; source code has an order of its own."""
    return is_gathered(tenant) and not tenant.reads_code


def joined(
    items: Sequence[_T],
    document_of: Callable[[_T], str],
    are_joined: Callable[[_T, _T], bool],
    *,
    most: int,
) -> list[list[_T]]:
    """Return items in groups that are joined, in the order of the first of each.

    Args:
        items: best first.
        document_of: the id of the document of an item: those of others are not joined.
        are_joined: whether two items of one document belong together.
        most: groups that items may join; what comes behind them is a group of its own.
    """
    groups: dict[int, list[_T]] = {}
    of_document: defaultdict[str, list[int]] = defaultdict(list)
    for number, item in enumerate(items):
        near = of_document[document_of(item)]
        beside = [
            at
            for at in (near if len(groups) <= most else ())
            if any(are_joined(item, other) for other in groups[at])
        ]
        home = next((at for at in beside if len(groups[at]) < MOST_PARTS), None)
        if home is None:
            groups[number] = [item]
            near.append(number)
            continue
        groups[home].append(item)
        for other in beside:
            if other != home and len(groups[home]) + len(groups[other]) <= MOST_PARTS:
                groups[home] += groups.pop(other)
                near.remove(other)
    return [*groups.values()]


def spread(
    items: Sequence[_T], document_of: Callable[[_T], str], scores: Sequence[float]
) -> list[_T]:
    """Return items with at most two of one document in the first five places.

    Another document's item takes a place if it is near: no farther behind the fifth item than that
    is behind the first one.

    Args:
        items: best first.
        document_of: the id of the document of an item.
        scores: of the items, in any scale.
    """
    places = min(_FIRST_PLACES, len(items))
    if not places:
        return []
    least = least_near_score(scores)
    left = list(range(len(items)))
    chosen: list[int] = []
    counts: Counter[str] = Counter()
    while len(chosen) < places:
        fitting = (
            at
            for at in left
            if scores[at] >= least and counts[document_of(items[at])] < _MOST_OF_A_DOCUMENT
        )
        taken = next(fitting, left[0])
        left.remove(taken)
        chosen.append(taken)
        counts[document_of(items[taken])] += 1
    return [items[at] for at in (*chosen, *left)]


def least_near_score(scores: Sequence[float]) -> float:
    """Return the lowest score that is near: as far behind the fifth as that is behind the first.

    Args:
        scores: of at least one item, best first.
    """
    return 2 * scores[min(_FIRST_PLACES, len(scores)) - 1] - scores[0]


def is_crowded(items: Sequence[Passage]) -> bool:
    """Return whether one document has more of the first places than it is due."""
    counts = Counter(map(document_id, items[:_FIRST_PLACES]))
    return max(counts.values(), default=0) > _MOST_OF_A_DOCUMENT


def document_id(item: Distinct | Passage) -> str:
    """Return the id of the document of a candidate or a passage."""
    return item.candidate.document_id


def are_neighbours(one: Distinct, other: Distinct) -> bool:
    """Return whether two candidates will be one hit, as far as their numbers show."""
    return (
        _version(one.candidate) == _version(other.candidate)
        and not (one.candidate.within or other.candidate.within)
        and abs(one.candidate.ordinal - other.candidate.ordinal) == 1
    )


def are_adjoining(one: Passage, other: Passage) -> bool:
    """Return whether nothing but blanks is between two passages of one version of a document."""
    return _overlap(one, other) is not None and _are_of_one_kind(one, other)


def are_overlapping(one: Passage, other: Passage) -> bool:
    """Return whether two passages of one version of a document have a text in common."""
    return (_overlap(one, other) or 0) > 0 and _are_of_one_kind(one, other)


def merge(parts: Sequence[Passage]) -> Passage:
    """Return one passage with the text of all of them, from its first to its last character.

    Args:
        parts: that overlap or adjoin, best first: the hit is the best one's in all that it says of
            itself but its text and its place.
    """
    best, ordered = parts[0], sorted(parts, key=_place)
    if len(ordered) == 1:
        return best
    first = ordered[0].fields
    text = first["text"]
    at = first["end"]
    before = ordered[0]
    for part in ordered[1:]:
        start, end = part.fields["start"], part.fields["end"]
        if end > at:
            text += _blanks(before, part, start - at) if start > at else ""
            text += part.fields["text"][max(at - start, 0) :]
            at, before = end, part
    fields = {**best.fields, **_places(ordered), "text": text, "start": first["start"], "end": at}
    fields["context"] = first.get("context", "")  # of the place where the text begins
    fields["heading_path"] = _common([part.fields["heading_path"] for part in ordered])
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


def share_places(passages: Sequence[Passage], scores: Mapping[str, object]) -> list[Passage]:
    """Return passages without those that say what another document's does, which names them.

    Of two that are equally good the newer one is shown.

    Args:
        passages: best first.
        scores: by id; a passage without one is as good as no other.
    """
    if len({document_id(passage) for passage in passages}) < 2:  # noqa: PLR2004 - a pair
        return list(passages)
    shown: list[Passage] = []
    wordings: list[Wording] = []
    places: defaultdict[tuple[object, ...], list[int]] = defaultdict(list)
    for passage in passages:
        wording = Wording(passage.fields["text"])
        # Passages that share a place have one of these keys in common.
        keys: list[tuple[object, ...]] = [(_years(passage), passage.fields.get("context"))]
        if len(passages) > _MOST_IN_PAIRS:
            figures = frozenset(wording.figures.items())
            keys = [(*keys[0], figures, shingle) for shingle in wording.first_shingles]
        same = next(
            (
                at
                for at in sorted({at for key in keys for at in places[key]})
                if document_id(shown[at]) != document_id(passage)
                and _have_runs_in_common(wordings[at], wording)
                and are_alike(wordings[at], wording)
            ),
            None,
        )
        if same is not None:
            shown[same] = _sharing(shown[same], passage, scores)
            continue
        for key in keys:
            places[key].append(len(shown))
        shown.append(passage)
        wordings.append(wording)
    return shown


def _have_runs_in_common(one: Wording, other: Wording) -> bool:
    """Return whether passages have half of their long runs in common."""
    common = len(one.long_runs & other.long_runs)
    return 2 * common >= max(len(one.long_runs), len(other.long_runs))


def _version(candidate: Candidate) -> tuple[str, str]:
    return candidate.document_id, candidate.index_key


def _place(passage: Passage) -> tuple[int, int]:
    return passage.fields["start"], passage.fields["end"]


def _are_of_one_kind(one: Passage, other: Passage) -> bool:
    """Return whether two passages are of one version and one part of it, and in the same copies.

    A copy of one of them alone would be named for the text of both, or not at all.
    """
    fields, others = one.fields, other.fields
    return (
        _version(one.candidate) == _version(other.candidate)
        and {*one.also} == {*other.also}
        and all(fields.get(name) == others.get(name) for name in ("source_type", "sheet", "slide"))
        # A definition in source code stays a hit of its own.
        and not any(of.get("metadata", {}).get(SYMBOL) for of in (fields, others))
    )


def _overlap(one: Passage, other: Passage) -> int | None:
    """Return how many characters two passages have in common; None if more than blanks is between.

    A passage whose text is not that of its place has no neighbours.
    """
    first, second = one.fields, other.fields
    if _place(other) < _place(one):
        first, second = second, first
    gap = second["start"] - first["end"]
    if gap > _MOST_BLANKS or (gap > 0 and second["ordinal"] - first["ordinal"] != 1):
        return None
    if any(len(of["text"]) != of["end"] - of["start"] for of in (first, second)):
        return None
    if gap >= 0:
        return 0
    common = min(-gap, len(second["text"]))
    at = second["start"] - first["start"]
    is_same = first["text"][at : at + common] == second["text"][:common]
    return common if is_same else None


def _blanks(before: Passage, after: Passage, count: int) -> str:
    """Return white space between two passages, with as many line ends as the document has there."""
    last, first = before.fields.get("line_end"), after.fields.get("line_start")
    lines = count if last is None or first is None else max(first - last, 0)
    return ("\n" * min(lines, count)).ljust(count)


def _places(ordered: Sequence[Passage]) -> dict[str, Any]:
    """Return the location of passages in the order of their document."""
    found: dict[str, Any] = {}
    for name in LOCATION_FIELDS:
        values = [v for part in ordered if (v := part.fields.get(name)) is not None]
        pick = min if name.endswith("_start") else max if name.endswith("_end") else _first_of
        found[name] = pick(values) if values else None
    return found


def _first_of(values: Sequence[Any]) -> Any:
    return values[0]


def _common(paths: Sequence[Sequence[str]]) -> list[str]:
    """Return the headings that all paths begin with."""
    count = 0
    for headings in zip(*paths, strict=False):
        if len({*headings}) > 1:
            break
        count += 1
    return list(paths[0][:count])


def _years(passage: Passage) -> frozenset[str]:
    """Return the years that a document is of by its title, headings and address."""
    fields = passage.fields
    named = (fields.get("title") or "", passage.candidate.uri, *fields["heading_path"])
    return frozenset(year for name in named for year in _YEAR.findall(name))


def _sharing(shown: Passage, other: Passage, scores: Mapping[str, object]) -> Passage:
    """Return the one of two passages that is shown, with the other's document."""
    times = (other.fields.get("modified_at") or "", shown.fields.get("modified_at") or "")
    is_equal = shown.id in scores and scores.get(other.id) == scores[shown.id]
    first, second = (other, shown) if is_equal and times[0] > times[1] else (shown, other)
    also = dict.fromkeys((*first.also, second.candidate.uri, *second.also))
    also.pop(first.candidate.uri, None)
    return replace(first, also=tuple(uri for uri in also if uri))
