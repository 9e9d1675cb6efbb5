"""Meaningless English: documents of a made-up company, reproducible from a seed.

Sentences are patterns filled from word lists, so words repeat as they do in real text, and no two
documents are alike. Only the standard library is used, so the module runs in any environment.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator


def _split(text: str) -> tuple[str, ...]:
    return tuple(text.split())


_NOUNS = _split(
    """
    account alarm archive battery billing branch bridge budget cable calendar carrier
    catalogue channel checklist circuit client cluster compressor contract conveyor courier
    crane customer database deadline delivery depot deployment dispatcher document driver
    engine engineer estimate failure filter forecast gateway generator harbour handover heater
    incident inspection invoice journal keyboard label ledger licence loader machine
    maintenance manifest manager measurement meeting meter migration module monitor network
    notice operator order outage package panel partner payment permit pipeline platform policy
    port printer procedure process pump quality queue rack receipt record region release
    repair replica report request reservoir review rollback route schedule schema sensor
    server shift signal station storage supplier switch system team terminal ticket timetable
    tower transfer transformer truck turbine upgrade valve vehicle vendor vessel warehouse
    window workshop zone
    """
)
_VERBS = _split(
    """
    accepts adjusts approves archives assigns balances blocks cancels checks closes collects
    compares confirms copies counts delays delivers describes discards follows handles holds
    informs inspects keeps limits lists loads logs measures merges moves notifies opens orders
    owns pauses plans prepares prints publishes reads receives records rejects releases
    removes repairs replaces reports reserves restarts restores retries returns reviews routes
    samples schedules sends signs starts stops stores tests tracks transfers updates validates
    verifies writes
    """
)
_ADJECTIVES = _split(
    """
    annual automatic available central cold complete critical current daily damaged digital
    early electric empty expected external final first former frequent heavy hourly idle
    independent internal large late local long lower manual mobile monthly narrow new nightly
    northern open optional outer pending planned portable previous primary private public
    quarterly quick rear regular remote repeated reserve safe scheduled second secondary
    secure separate shared short single slow southern spare special stable standard temporary
    third upper urgent usual valid weekly wide
    """
)
_PLACES = _split(
    """
    Alderbrook Ashford Birchwater Blackrock Bramley Calderhead Dunmore Eastholm Elmfield
    Fairhaven Glenwick Greyport Hartwell Highmoor Kingsferry Lakeside Langdale Marlow
    Northgate Oakhurst Penrose Ravensby Redcliff Saltmarsh Stonebridge Thornbury Underhill
    Westbay Whitford Yarrow
    """
)
_TIMES = (
    "after every shift",
    "before noon",
    "at the end of the month",
    "within four hours",
    "during the night",
    "on weekdays",
    "twice a week",
    "after the handover",
    "until further notice",
    "in the first quarter",
    "as soon as possible",
    "once a year",
)
_LANGUAGES = ("python", "bash", "yaml", "sql")

_Pattern = Callable[[random.Random], str]


def _draw_noun(rng: random.Random) -> str:
    noun = rng.choice(_NOUNS)
    return f"{rng.choice(_ADJECTIVES)} {noun}" if rng.random() < 0.6 else noun


_PATTERNS: tuple[_Pattern, ...] = (
    lambda r: f"The {_draw_noun(r)} {r.choice(_VERBS)} the {_draw_noun(r)} {r.choice(_TIMES)}.",
    lambda r: (
        f"In {r.choice(_PLACES)} the {_draw_noun(r)} {r.choice(_VERBS)} {r.randint(2, 900)}"
        f" {_draw_noun(r)}s {r.choice(_TIMES)}."
    ),
    lambda r: (
        f"If the {_draw_noun(r)} {r.choice(_VERBS)} no {_draw_noun(r)}, the {_draw_noun(r)} of"
        f" {r.choice(_PLACES)} {r.choice(_VERBS)} it {r.choice(_TIMES)}."
    ),
    lambda r: (
        f"Nobody {r.choice(_VERBS)} a {_draw_noun(r)} alone: the {_draw_noun(r)} {r.choice(_VERBS)}"
        f" its {_draw_noun(r)}, and the {_draw_noun(r)} is noted {r.choice(_TIMES)}."
    ),
    lambda r: (
        f"Section {r.randint(1, 40)}.{r.randint(1, 20)} of the {_draw_noun(r)} says who"
        f" {r.choice(_VERBS)} the {_draw_noun(r)} when the {_draw_noun(r)} is down."
    ),
)


def draw_sentence(rng: random.Random) -> str:
    """Return one sentence of about 80 characters."""
    return rng.choice(_PATTERNS)(rng)


def draw_paragraph(rng: random.Random) -> str:
    """Return two to six sentences on one line."""
    return " ".join(draw_sentence(rng) for _ in range(rng.randint(2, 6)))


def draw_title(rng: random.Random) -> str:
    """Return a heading of about three words."""
    return f"{_draw_noun(rng).capitalize()} and {_draw_noun(rng)} in {rng.choice(_PLACES)}"


def draw_slug(rng: random.Random) -> str:
    """Return a part of a file name."""
    return f"{rng.choice(_ADJECTIVES)}-{rng.choice(_NOUNS)}"


def draw_document(rng: random.Random, sections: int) -> str:
    """Return a Markdown document: a title, an introduction and that many sections."""
    parts = [f"# {draw_title(rng)}", draw_paragraph(rng)]
    for _ in range(sections):
        level = "###" if len(parts) > 2 and rng.random() < 0.3 else "##"
        parts += [f"{level} {draw_title(rng)}", *_draw_section(rng)]
    return "\n\n".join(parts) + "\n"


def _draw_section(rng: random.Random) -> Iterator[str]:
    for _ in range(rng.randint(2, 4)):
        yield draw_paragraph(rng)
    kind = rng.random()
    if kind < 0.25:
        yield "\n".join(f"- {draw_sentence(rng)}" for _ in range(rng.randint(3, 6)))
    elif kind < 0.33:
        yield _draw_table(rng)
    elif kind < 0.41:
        yield _draw_code(rng)


def _draw_table(rng: random.Random) -> str:
    rows = [
        f"| {rng.choice(_PLACES)} | {_draw_noun(rng)} | {rng.randint(1, 5000)}"
        f" | {rng.choice(_TIMES)} |"
        for _ in range(rng.randint(4, 9))
    ]
    return "\n".join(["| Place | What | Number | When |", "|---|---|---|---|", *rows])


def _draw_code(rng: random.Random) -> str:
    lines = [
        f"{rng.choice(_NOUNS)}_{rng.choice(_NOUNS)} = {rng.choice(_VERBS)}({rng.randint(1, 9999)})"
        for _ in range(rng.randint(4, 10))
    ]
    return "\n".join([f"```{rng.choice(_LANGUAGES)}", *lines, "```"])
