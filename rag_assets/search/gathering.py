"""Gathering: which candidates and passages of a search become one hit.

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
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from heapq import nsmallest
from itertools import chain
from typing import Any, Final, TypeVar

from rag_assets.ingest.chunking.model import LOCATION_FIELDS
from rag_assets.search.progress import Distinct, Passage
from rag_assets.search.words import MONTHS, SCALES, UNITS, turning_words, word_values
from rag_assets.storage.index.model import SYMBOL, Candidate
from rag_assets.tenants.model import Tenant
from rag_assets.tenants.profiles import get_profile

# Near copies.
_SHINGLE: Final = 3
"""Number of words in a shingle."""
_LEAST_SHARED: Final = 0.9
"""Minimum share of shingles that two passages with the same meaning have in common."""
_ROUNDING: Final = 1e-6
"""Tolerance that is larger than the rounding error of a product of floats, and smaller than one
shingle."""
_LONGEST_WORDS: Final = 14
"""Average number of characters of a word, including the space after it."""
_LONG: Final = 5
"""Minimum characters of a word that only few texts have in common."""
_SHORT: Final = 2
"""Maximum letters of a unit that is recognized only after a number, as in 5 m."""
_BEGINNINGS = "لا لم لن ليس لست ما غير بدون دون إلا فقط قبل بعد אין לא בלי ללא רק לפני אחרי"
_TURNING_BEGINNINGS: Final = tuple(_BEGINNINGS.split())
"""Words in Arabic and Hebrew that invert a sentence or limit its scope, without their endings."""
_JOINED: Final = "وفוה"
"""Letters for "and" and similar words, which are attached to the following word."""
_TURNING_SIGNS: Final = "不没沒無无非未勿禁否別别莫只前后後ずんなぬ안않못없아말만"
"""Characters of East Asian words that invert a sentence or limit its scope."""
_WITHOUT_SPACES: Final = re.compile(
    r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]"
)
_UNKNOWN_SCRIPTS: Final = re.compile(r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff]")
"""Scripts without spaces between words, in which no single character marks a negation."""
_MARKS: Final = ".,;:!?\"'()[]{}<>«»„“”‚‘’`*_#|~…、。，；：！？「」『』（）《》¿¡।؟،؛-–—/\\+=•"
_SENTENCE_ENDS: Final = re.compile(r"(?<=[.!?…])\s|[。！？।؟]")
_PARTS: Final = re.compile(rf"{_WITHOUT_SPACES.pattern}|(?:(?!{_WITHOUT_SPACES.pattern}).)+")
_AROUND_FIGURES: Final = "".join(sign for sign in _MARKS if sign not in "-–—+=<>~")

# Merged and spread passages.
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


@dataclass(frozen=True, slots=True)
class Enclosed:
    """Candidates grouped into hits.

    Attributes:
        shown: by candidate id, the candidate that is shown for it; for most candidates, the
            candidate itself.
        blocks: by the id of a shown passage, the best block in it.
    """

    shown: Mapping[str, Candidate]
    blocks: Mapping[str, Candidate]


def group_enclosed(candidates: Sequence[Candidate]) -> Enclosed:
    """Group candidates into hits; a block is its own hit if no passage that contains it was found.

    A ranking counts a passage at its own rank or the rank of its best block, whichever is higher,
    and the passage is shown. Many blocks of one long page would leave no room for other documents.

    Args:
        candidates: best first. If several passages contain a block, the best passage is shown.
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
        shown[candidate.id] = min(around, key=lambda found: found[0])[1] if around else candidate
        if around:
            blocks.setdefault(shown[candidate.id].id, candidate)
    return Enclosed(shown, blocks)


def _fold_text(text: str) -> str:
    return unicodedata.normalize("NFKC", text).casefold()


_TURNING: Final = frozenset(map(_fold_text, turning_words()))
"""Words that invert a sentence or limit its scope: negations, permissions, scopes."""


def collapse(candidates: Sequence[Candidate]) -> list[Distinct]:
    """Keep the first candidate of each text, with the uris of the other documents that have it.

    Among equally good candidates, one that is adjacent to a kept candidate wins, so that hits do
    not alternate between two copies of a document.

    If both a passage and blocks in it were found, the entry that ranks first stays: the passage
    without these blocks, or the block without this passage.

    Args:
        candidates: best first; only those that the caller may read.
    """
    equal: dict[str, list[Candidate]] = {}
    for candidate in _outermost_first(candidates):
        equal.setdefault(candidate.text_key, []).append(candidate)
    distinct: list[Distinct] = []
    kept: set[tuple[str, str, int]] = set()
    for same in equal.values():
        first = _first_adjoining(same, kept) if len(same) > 1 else same[0]
        kept.add((first.document_id, first.index_key, first.ordinal))
        distinct.append(Distinct(first, _list_other_uris(first, same) if len(same) > 1 else ()))
    return distinct


def _first_adjoining(
    same: Sequence[Candidate], kept: Collection[tuple[str, str, int]]
) -> Candidate:
    """Return the first of equally good candidates that adjoins a kept one, or else the first."""
    for candidate in same:
        beside = {
            (candidate.document_id, candidate.index_key, candidate.ordinal + step)
            for step in (-1, 1)
        }
        if candidate.score == same[0].score and not beside.isdisjoint(kept):
            return candidate
    return same[0]


def _outermost_first(candidates: Sequence[Candidate]) -> Iterator[Candidate]:
    """Yield candidates, except those that contain or lie within a higher-ranked candidate."""
    held: set[tuple[str, str, int]] = set()
    kept: set[tuple[str, str, int]] = set()
    for candidate in candidates:
        version = candidate.document_id, candidate.index_key
        around = [(*version, ordinal) for ordinal in candidate.within]
        own = (*version, candidate.ordinal)
        if own in held or not kept.isdisjoint(around):
            continue
        kept.add(own)
        held.update(around)
        yield candidate


def _list_other_uris(first: Candidate, others: Sequence[Candidate]) -> tuple[str, ...]:
    uris = dict.fromkeys(other.uri for other in others if other.uri)
    uris.pop(first.uri, None)
    return tuple(uris)


@dataclass(frozen=True)
class Wording:
    """The words of a passage, prepared for comparison."""

    text: str

    @cached_property
    def comparable_parts(self) -> frozenset[str]:
        """Return the long words; in a script without spaces, all pairs of adjacent characters."""
        runs = self.text.casefold().split()
        if len(self.text) <= _LONGEST_WORDS * len(runs):
            return frozenset(run for run in runs if len(run) >= _LONG)
        signs = "".join(runs)  # in scripts without spaces
        return frozenset(signs[at : at + 2] for at in range(len(signs)))

    @cached_property
    def words(self) -> list[tuple[str, str]]:
        """Return each word, folded and as written; in scripts without blanks, each character."""
        text = unicodedata.normalize("NFKC", self.text)
        parts: Iterable[str] = text.split()
        if _WITHOUT_SPACES.search(text):
            parts = chain.from_iterable(map(_split_words, parts))
        return [(word.casefold(), word) for part in parts if (word := part.strip(_MARKS))]

    @cached_property
    def distinct(self) -> frozenset[str]:
        """Return the distinct words."""
        return frozenset(folded for folded, _ in self.words)

    @cached_property
    def shingles(self) -> frozenset[tuple[str, ...]]:
        """Return all sequences of _SHINGLE words."""
        words = [folded for folded, _ in self.words]
        return frozenset(
            tuple(words[at : at + _SHINGLE]) for at in range(max(1, len(words) - _SHINGLE + 1))
        )

    @cached_property
    def first_shingles(self) -> frozenset[tuple[str, ...]]:
        """Return a sample of shingles; the samples of two passages with the same meaning overlap.

        Of two such passages, each lacks at most a tenth of the other's shingles. Take the first
        shingles in any fixed order, one more than that tenth: at least one of them is in both
        passages.
        """
        missing = int((1 - _LEAST_SHARED) * len(self.shingles) + _ROUNDING)
        return frozenset(nsmallest(missing + 1, self.shingles, key=hash))

    @cached_property
    def figures(self) -> Counter[str]:
        """Return the character runs that contain digits, with their signs and the next word."""
        runs = [run.strip(_AROUND_FIGURES) for run in _fold_text(self.text).split()]
        return Counter(
            f"{run} {after}"
            for run, after in zip(runs, [*runs[1:], ""], strict=True)
            if not run.isalpha() and any(sign.isdigit() for sign in run)
        )

    @cached_property
    def sentences(self) -> frozenset[tuple[str, ...]]:
        """Return the words of each sentence."""
        parts = (Wording(part).words for part in _SENTENCE_ENDS.split(self.text))
        return frozenset(tuple(folded for folded, _ in words) for words in parts if words)

    @cached_property
    def counted(self) -> Counter[str]:
        """Return the number of occurrences of each word."""
        return Counter(folded for folded, _ in self.words)


def are_alike(one: Wording, other: Wording) -> bool:
    """Return whether two passages have the same meaning.

    White space, line ends, capitals and punctuation make no difference. One passage may have an
    additional sentence, unless that sentence contains a figure, a unit, a negation or the like.
    """
    longest = max(len(one.words), len(other.words))
    if not longest or len(one.distinct ^ other.distinct) > 2 * (1 - _LEAST_SHARED) * longest:
        return False
    most = max(len(one.shingles), len(other.shingles))
    if len(one.shingles & other.shingles) < _LEAST_SHARED * most:
        return False
    return one.figures == other.figures and not _differ_in_meaning(one, other)


def _differ_in_meaning(one: Wording, other: Wording) -> bool:
    """Return whether words that only one of the passages has may change its meaning.

    A replaced word may be a name, or the opposite of the other word. Additional words do not change
    the meaning if they form their own sentence.
    """
    more, less = one.counted - other.counted, other.counted - one.counted
    if not (more or less):
        return False
    if (more and less) or any(map(_changes_meaning, (*more, *less))):
        return True
    return not (one.sentences <= other.sentences or other.sentences <= one.sentences)


def _changes_meaning(word: str) -> bool:
    if word in _TURNING or word in MONTHS or word.endswith(("n't", "n’t")):
        return True
    if len(word) > _SHORT and (word in SCALES or word in UNITS):
        return True
    if any(value != 1 for value in word_values(word)):  # The word for 1 may be an article.
        return True
    is_unknown = _UNKNOWN_SCRIPTS.search(word) is not None
    begins = word.lstrip(_JOINED).startswith(_TURNING_BEGINNINGS)
    return is_unknown or begins or any(sign in word for sign in _TURNING_SIGNS)


def _split_words(run: str) -> list[str]:
    """Return the words of a run without blanks; in a script without blanks, each character."""
    return [part for part in _PARTS.findall(run) if part] if _WITHOUT_SPACES.search(run) else [run]


def is_gathered(tenant: Tenant) -> bool:
    """Return whether the passages of a tenant's searches are gathered."""
    return not get_profile(tenant.profile).keeps_passages


def is_spread(tenant: Tenant) -> bool:
    """Return whether near copies share one hit; hits in source code have their own order."""
    return is_gathered(tenant) and not tenant.reads_facts


def group_items(
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


def spread_documents(
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
    least = lowest_near_score(scores)
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


def lowest_near_score(scores: Sequence[float]) -> float:
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


def merge_passages(parts: Sequence[Passage]) -> Passage:
    """Return one passage with the joint text of all parts, from their first to last character.

    Args:
        parts: overlapping or adjoining, best first. The result describes itself like the best part,
            except for its text and location.
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
            text += _white_space_between(before, part, start - at) if start > at else ""
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
        keys: list[tuple[object, ...]] = [(_list_years(passage), passage.fields.get("context"))]
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
            shown[same] = _merge_copies(shown[same], passage, scores)
            continue
        for key in keys:
            places[key].append(len(shown))
        shown.append(passage)
        wordings.append(wording)
    return shown


def _have_runs_in_common(one: Wording, other: Wording) -> bool:
    """Return whether two passages have at least half of their long runs in common."""
    common = len(one.comparable_parts & other.comparable_parts)
    return 2 * common >= max(len(one.comparable_parts), len(other.comparable_parts))


def _version(candidate: Candidate) -> tuple[str, str]:
    return candidate.document_id, candidate.index_key


def _get_span(passage: Passage) -> tuple[int, int]:
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
    if _get_span(other) < _get_span(one):
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


def _white_space_between(before: Passage, after: Passage, count: int) -> str:
    """Return white space to put between two passages, with as many line ends as in the document."""
    last, first = before.fields.get("line_end"), after.fields.get("line_start")
    lines = count if last is None or first is None else max(first - last, 0)
    return ("\n" * min(lines, count)).ljust(count)


def _cover_locations(ordered: Sequence[Passage]) -> dict[str, Any]:
    """Return the location that covers all passages; they are in document order."""
    found: dict[str, Any] = {}
    for name in LOCATION_FIELDS:
        values = [v for part in ordered if (v := part.fields.get(name)) is not None]
        pick = min if name.endswith("_start") else max if name.endswith("_end") else _get_first
        found[name] = pick(values) if values else None
    return found


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
    """Return the one of two passages that is shown, with the other's document added to it."""
    times = (other.fields.get("modified_at") or "", shown.fields.get("modified_at") or "")
    is_equal = shown.id in scores and scores.get(other.id) == scores[shown.id]
    first, second = (other, shown) if is_equal and times[0] > times[1] else (shown, other)
    also = dict.fromkeys((*first.also, second.candidate.uri, *second.also))
    also.pop(first.candidate.uri, None)
    return replace(first, also=tuple(uri for uri in also if uri))
