"""Translations of one text into several languages; only one language is indexed.

Files are translations of each other if their paths differ only in a language, and if there are at
least three languages: `lang/de/auth.php`, `intl/de-DE.json`, `messages_de.properties`. Outside a
folder or a file format for translations, they must include English or the original text
(`messages.properties`), or have five languages, since `markets/de.yml` is about a country. Outside,
configuration never counts as translations. Program files count only within folders named after
languages. English is indexed; without English, the original text; without that, the language of
most files.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping
from hashlib import blake2b
from typing import Final

_FEWEST: Final = 3
"""Minimum number of files that differ only in language for them to count as translations."""
_FEWEST_ANYWHERE: Final = 5
"""The minimum outside of folders of translations, without English and without an original text."""
_READINGS: Final = 3
"""Number of parts at the end of a path that may be its language."""
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
"""Language codes of ISO 639."""
_LANGUAGE: Final = re.compile(
    r"(?P<code>[a-z]{2,3})(?:[-_](?:r?[A-Z]{2}|[a-z]{2}|[A-Z][a-z]{3}|\d{3}|latin|cyrillic"
    r"|(?:in)?formal|valencia)){0,2}(?=[./]|$)"
)
_BEFORE: Final = re.compile(r"(?:^|/)(?:values-)?|[._-]")
_FOLDER: Final = re.compile(
    r"(?i)(?:^|/)(?:langs?|languages?|locales?|i18n|l10n|intl|translations?|messages)/"
)
_OF_TRANSLATIONS: Final = re.compile(
    rf"{_FOLDER.pattern}|\.lproj/|\.(?:arb|ftl|mo|po|strings|xlf|xliff)$"
)
_CONFIGURATION: Final = re.compile(
    r"(?i)(?:^|/)(?:(?:configs?|conf|configuration|settings|deploy|deployment|helm|charts|k8s"
    r"|kubernetes|manifests|ansible|infra|terraform|docker)/|values[._-][^/]*\.ya?ml$)"
)
_DATA: Final = (
    *(".arb", ".ftl", ".ini", ".json", ".json5", ".mo", ".php", ".po", ".properties", ".resx"),
    *(".strings", ".toml", ".xlf", ".xliff", ".xml", ".yaml", ".yml", ".md", ".txt", ".html"),
)
_PROGRAMS: Final = (".php", ".js", ".ts", ".mjs", ".rb", ".py", ".md", ".txt", ".html")
_ENGLISH: Final = ("en", "en-us", "en_us", "en-gb", "en_gb")
_PROGRAMMING: Final = frozenset(("as", "cs", "is", "ml", "or", "pl", "ps", "ts"))
"""Codes that, in paths of programs, are more likely programming languages or ordinary words."""


def left_out_translations(paths: Iterable[str]) -> dict[str, str]:
    """Map each file that is left out, as a translation, to the indexed file with the same text.

    Args:
        paths: the paths of all files that would be indexed, POSIX, within the repository.
    """
    known = frozenset(paths)
    alike: defaultdict[bytes, dict[str, str]] = defaultdict(dict)
    for path in known:
        for template, language in _list_readings(path):
            alike[_digest(template)][language] = path
    groups: list[tuple[str, dict[str, str]]] = []
    for key, found in alike.items():
        if len(found) >= _FEWEST:
            original = _find_original(key, found)
            if _are_translations(found, has_original=original in known):
                groups.append((original, found))
    spread = Counter(language for _, found in groups for language in found)
    left_out: dict[str, str] = {}
    for original, found in groups:
        kept = original if original in known else found[_choose_indexed(found, spread)]
        left_out.update((path, kept) for path in found.values() if path != kept)
    return left_out


def _are_translations(found: Mapping[str, str], *, has_original: bool) -> bool:
    path = next(iter(found.values()))
    is_program = path.lower().endswith(_PROGRAMS)
    languages = {one[:2] for one in found if not (is_program and one in _PROGRAMMING)}
    if len(languages) < _FEWEST:
        return False
    if _OF_TRANSLATIONS.search(path) is not None:
        return True
    if _CONFIGURATION.search(path) is not None:
        return False
    return has_original or _find_english(found) is not None or len(languages) >= _FEWEST_ANYWHERE


def _find_english(found: Iterable[str]) -> str | None:
    by_name = {language.lower(): language for language in found}
    return next((by_name[one] for one in _ENGLISH if one in by_name), None)


def _choose_indexed(found: Mapping[str, str], spread: Counter[str]) -> str:
    return _find_english(found) or min(found, key=lambda one: (-spread[one], one))


def _find_original(key: bytes, found: Mapping[str, str]) -> str:
    """Return the path of the original text, which has no language in it."""
    path = next(iter(found.values()))
    template = next(one for one, _ in _list_readings(path) if _digest(one) == key)
    return re.sub(r"[._-]\{\}|\{\}\.lproj(?=/)", "", template)


def _digest(template: str) -> bytes:
    """Return a short key of a path; its length does not depend on the path's."""
    return blake2b(template.encode("utf-8", "surrogateescape"), digest_size=16).digest()


def _list_readings(path: str) -> Iterator[tuple[str, str]]:
    """Yield a path without one of its last parts that may be a language, and that language."""
    lowered = path.lower()
    if not lowered.endswith((*_DATA, *_PROGRAMS)):
        return
    if lowered.endswith(_PROGRAMS) and _FOLDER.search(path) is None:
        return
    matches = (_LANGUAGE.match(path, before.end()) for before in _BEFORE.finditer(path))
    languages = (found for found in matches if found is not None and found["code"] in _CODES)
    for found in deque(languages, _READINGS):
        yield f"{path[: found.start()]}{{}}{path[found.end() :]}", found[0]
