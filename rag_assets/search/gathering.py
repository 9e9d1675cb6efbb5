"""Gathering: turn the passages that a search read into hits.

Passages of one document that overlap or adjoin become one hit with their joint text. Nearly
identical passages of several documents become one hit that names all of these documents. One
document gets at most two of the first five positions if another document is near.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, TypeVar

from rag_assets.ingest.chunking.location import LOCATION_FIELDS
from rag_assets.search.duplicates import Distinct, Passage, Wording, are_alike
from rag_assets.storage.index.model import SYMBOL, Candidate
from rag_assets.tenants.model import Tenant
from rag_assets.tenants.profiles import profile_of

MOST_PARTS: Final = 3
"""Maximum passages of a hit, so its text has at most three times the tokens of a passage."""
_FIRST_PLACES: Final = 5
_MOST_OF_A_DOCUMENT: Final = 2
"""Maximum hits of one document among the first positions."""
_MOST_BLANKS: Final = 16
"""Maximum blanks between two adjacent chunks. Chunks start and end with words."""
_MOST_IN_PAIRS: Final = 200
"""Maximum number of passages that are compared in pairs; for more, an index of shingles is
faster."""
_YEAR: Final = re.compile(r"(?<!\d)(?:19|20)\d\d(?!\d)")

_T = TypeVar("_T")


def is_gathered(tenant: Tenant) -> bool:
    """Return whether the passages of a tenant's searches are gathered."""
    return not profile_of(tenant.profile).keeps_passages


def is_spread(tenant: Tenant) -> bool:
    """Return whether near copies share one hit; hits in source code have their own order."""
    return is_gathered(tenant) and not tenant.reads_facts


def joined(
    items: Sequence[_T],
    document_of: Callable[[_T], str],
    are_joined: Callable[[_T, _T], bool],
    *,
    most: int,
) -> list[list[_T]]:
    """Return groups of items that belong together, in the order of each group's first item.

    Args:
        items: best first.
        document_of: returns the document id of an item. Only items of the same document are
            grouped.
        are_joined: returns whether two items of one document belong together.
        most: number of groups after which each further item becomes its own group.
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
    """Return the items in an order with at most two of one document in the first five positions.

    An item of another document moves up only if it is near: its score may lie no farther below the
    fifth item's than the fifth's lies below the first's.

    Args:
        items: best first.
        document_of: returns the document id of an item.
        scores: scores of the items, on any scale.
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
    """Return the lowest score that is near: as far below the fifth as the fifth is below the first.

    Args:
        scores: scores of at least one item, best first.
    """
    return 2 * scores[min(_FIRST_PLACES, len(scores)) - 1] - scores[0]


def is_crowded(items: Sequence[Passage]) -> bool:
    """Return whether one document has more of the first positions than allowed."""
    counts = Counter(map(document_id, items[:_FIRST_PLACES]))
    return max(counts.values(), default=0) > _MOST_OF_A_DOCUMENT


def document_id(item: Distinct | Passage) -> str:
    """Return the document id of a candidate or a passage."""
    return item.candidate.document_id


def are_neighbours(one: Distinct, other: Distinct) -> bool:
    """Return whether two candidates will become one hit, judging by their ordinals."""
    return (
        _version(one.candidate) == _version(other.candidate)
        and not (one.candidate.within or other.candidate.within)
        and abs(one.candidate.ordinal - other.candidate.ordinal) == 1
    )


def are_adjoining(one: Passage, other: Passage) -> bool:
    """Return whether two passages of one document version have only blanks between them."""
    return _overlap(one, other) is not None and _are_of_one_kind(one, other)


def are_overlapping(one: Passage, other: Passage) -> bool:
    """Return whether two passages of one document version overlap."""
    return (_overlap(one, other) or 0) > 0 and _are_of_one_kind(one, other)


def merge(parts: Sequence[Passage]) -> Passage:
    """Return one passage with the joint text of all parts, from their first to last character.

    Args:
        parts: overlapping or adjoining, best first. The result describes itself like the best part,
            except for its text and location.
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
    fields["context"] = first.get("context", "")  # The context belongs to the start of the text.
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
    """Merge near copies from other documents into one passage, which then names these documents.

    Of two equally good passages, the newer one is shown.

    Args:
        passages: best first.
        scores: scores by id; a passage without a score does not equal any other.
    """
    if len({document_id(passage) for passage in passages}) < 2:  # noqa: PLR2004 - a pair
        return list(passages)
    shown: list[Passage] = []
    wordings: list[Wording] = []
    places: defaultdict[tuple[object, ...], list[int]] = defaultdict(list)
    for passage in passages:
        wording = Wording(passage.fields["text"])
        # Near copies have at least one of these keys in common.
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
    """Return whether two passages have at least half of their long runs in common."""
    common = len(one.long_runs & other.long_runs)
    return 2 * common >= max(len(one.long_runs), len(other.long_runs))


def _version(candidate: Candidate) -> tuple[str, str]:
    return candidate.document_id, candidate.index_key


def _place(passage: Passage) -> tuple[int, int]:
    return passage.fields["start"], passage.fields["end"]


def _are_of_one_kind(one: Passage, other: Passage) -> bool:
    """Return whether two passages have the same version, part of the document and copies.

    If they differ, a copy of only one of them would be named for the text of both, or not at all.
    """
    fields, others = one.fields, other.fields
    return (
        _version(one.candidate) == _version(other.candidate)
        and {*one.also} == {*other.also}
        and all(fields.get(name) == others.get(name) for name in ("source_type", "sheet", "slide"))
        # A definition in source code always remains a separate hit.
        and not any(of.get("metadata", {}).get(SYMBOL) for of in (fields, others))
    )


def _overlap(one: Passage, other: Passage) -> int | None:
    """Return the number of overlapping characters; None if the passages are apart.

    Passages with anything but blanks between them are apart. A passage whose text does not match
    its position also counts as apart.
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
    """Return white space to put between two passages, with as many line ends as in the document."""
    last, first = before.fields.get("line_end"), after.fields.get("line_start")
    lines = count if last is None or first is None else max(first - last, 0)
    return ("\n" * min(lines, count)).ljust(count)


def _places(ordered: Sequence[Passage]) -> dict[str, Any]:
    """Return the location that covers all passages; they are in document order."""
    found: dict[str, Any] = {}
    for name in LOCATION_FIELDS:
        values = [v for part in ordered if (v := part.fields.get(name)) is not None]
        pick = min if name.endswith("_start") else max if name.endswith("_end") else _first_of
        found[name] = pick(values) if values else None
    return found


def _first_of(values: Sequence[Any]) -> Any:
    return values[0]


def _common(paths: Sequence[Sequence[str]]) -> list[str]:
    """Return the headings with which all paths start."""
    count = 0
    for headings in zip(*paths, strict=False):
        if len({*headings}) > 1:
            break
        count += 1
    return list(paths[0][:count])


def _years(passage: Passage) -> frozenset[str]:
    """Return the years in a document's title, headings and address."""
    fields = passage.fields
    named = (fields.get("title") or "", passage.candidate.uri, *fields["heading_path"])
    return frozenset(year for name in named for year in _YEAR.findall(name))


def _sharing(shown: Passage, other: Passage, scores: Mapping[str, object]) -> Passage:
    """Return the one of two passages that is shown, with the other's document added to it."""
    times = (other.fields.get("modified_at") or "", shown.fields.get("modified_at") or "")
    is_equal = shown.id in scores and scores.get(other.id) == scores[shown.id]
    first, second = (other, shown) if is_equal and times[0] > times[1] else (shown, other)
    also = dict.fromkeys((*first.also, second.candidate.uri, *second.also))
    also.pop(first.candidate.uri, None)
    return replace(first, also=tuple(uri for uri in also if uri))
