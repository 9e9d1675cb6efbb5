"""Translations of one text into several languages, of which one is indexed.

Files are translations of each other if their paths differ in nothing but a language, and if there
are at least three languages: `lang/de/auth.php`, `intl/de-DE.json`, `messages_de.properties`.
Program files count within folders of languages alone. English is kept; without it the text from
which the others derive (`messages.properties`), else the language of most files.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from typing import Final

_FEWEST: Final = 3
"""Languages from which on files that differ in nothing else are translations."""
_CODE_WORDS: Final = (
    "aa ab af ak am an ar as av ay az ba be bg bh bi bm bn bo br bs ca ce ch co cr cs cu cv"
    " cy da de dv dz ee el en eo es et eu fa ff fi fj fo fr fy ga gd gl gn gu gv ha he hi ho"
    " hr ht hu hy hz ia id ie ig ii ik io is it iu iw ja jv ka kg ki kj kk kl km kn ko kr ks"
    " ku kv kw ky la lb lg li ln lo lt lu lv mg mh mi mk ml mn mr ms mt my na nb nd ne ng nl"
    " nn no nr nv ny oc oj om or os pa pi pl ps pt qu rm rn ro ru rw sa sc sd se sg si sk sl"
    " sm sn so sq sr ss st su sv sw ta te tg th ti tk tl tn to tr ts tt tw ty ug uk ur uz ve"
    " vi vo wa wo xh yi yo za zh zu ckb ast fil hsb kab kmr pap sah scn tok yue"
)
_CODES: Final = frozenset(_CODE_WORDS.split())
"""Of languages, by ISO 639."""
_LANGUAGE: Final = re.compile(
    r"(?P<code>[a-z]{2,3})(?:[-_](?:r?[A-Z]{2}|[a-z]{2}|[A-Z][a-z]{3}|\d{3}|latin|cyrillic"
    r"|(?:in)?formal|valencia)){0,2}(?=[./]|$)"
)
_BEFORE: Final = re.compile(r"(?:^|/)(?:values-)?|[._-]")
_FOLDER: Final = re.compile(
    r"(?i)(?:^|/)(?:langs?|languages?|locales?|i18n|l10n|intl|translations?|messages)/"
)
_DATA: Final = (
    *(".arb", ".ftl", ".ini", ".json", ".json5", ".mo", ".php", ".po", ".properties", ".resx"),
    *(".strings", ".toml", ".xlf", ".xliff", ".xml", ".yaml", ".yml", ".md", ".txt", ".html"),
)
_PROGRAMS: Final = (".php", ".js", ".ts", ".mjs", ".rb", ".py", ".md", ".txt", ".html")
_ENGLISH: Final = ("en", "en-us", "en_us", "en-gb", "en_gb")


def left_out_translations(paths: Iterable[str]) -> frozenset[str]:
    """Return the files of a repository that are translations of one that is indexed.

    Args:
        paths: of all files, POSIX, within the repository.
    """
    known = frozenset(paths)
    alike: defaultdict[str, dict[str, str]] = defaultdict(dict)
    for path in known:
        for template, language in _readings(path):
            alike[template][language] = path
    groups = {key: found for key, found in alike.items() if _are_languages(found)}
    spread = Counter(language for found in groups.values() for language in found)
    left_out: set[str] = set()
    for template, found in groups.items():
        original = re.sub(r"[._-]\{\}|\{\}\.lproj(?=/)", "", template)
        kept = original if original in known else found[_kept(found, spread)]
        left_out.update(path for path in found.values() if path != kept)
    return frozenset(left_out)


def _are_languages(found: dict[str, str]) -> bool:
    return len({language[:2] for language in found}) >= _FEWEST


def _kept(found: dict[str, str], spread: Counter[str]) -> str:
    by_name = {language.lower(): language for language in found}
    english = next((by_name[one] for one in _ENGLISH if one in by_name), None)
    return english or min(found, key=lambda one: (-spread[one], one))


def _readings(path: str) -> Iterator[tuple[str, str]]:
    """Yield a path without each part that may be a language, and that language."""
    lowered = path.lower()
    if not lowered.endswith((*_DATA, *_PROGRAMS)):
        return
    if lowered.endswith(_PROGRAMS) and _FOLDER.search(path) is None:
        return
    for before in _BEFORE.finditer(path):
        found = _LANGUAGE.match(path, before.end())
        if found is not None and found["code"] in _CODES:
            yield f"{path[: found.start()]}{{}}{path[found.end() :]}", found[0]
