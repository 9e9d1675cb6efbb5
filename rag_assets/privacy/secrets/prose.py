"""Credentials in sentences: `The password is X`, `Das Passwort lautet X`, `set the token to X`."""

from __future__ import annotations

import re
from collections.abc import Iterator

from rag_assets.privacy.secrets.names import Name
from rag_assets.privacy.secrets.placeholders import is_placeholder, is_predicate
from rag_assets.privacy.secrets.spans import SecretSpan
from rag_assets.privacy.secrets.values import (
    ValueKind,
    has_inner_capitals,
    is_alphabetic_password,
    is_bare_password,
    is_generated,
    is_key,
    is_mixed,
    is_password_of_symbols,
    is_phrase,
    is_pin,
    is_scrambled_word,
    is_secret_value,
    is_strong,
)

_RULE = "told-secret"
_REACH = 260
_FOREIGN_VERB = r"(?P<foreign>är|er|je|este|adalah|ialah|là|είναι|ir|yra|është|е|є|це|је)"
"""Verbs of languages whose adjectives are not known: after them, a plain word is no password."""
_VERB = (
    r"(?:is|was|are|=|reads|lautet|ist|heißt|heisst|war|es|era|est|était|è|é|wordt|jest"
    rf"|equals|becomes|remains|{_FOREIGN_VERB})"
)
_LINK = (
    r"(?:(?:has|have|had|will|would)[ \t](?:been|be|change|changed)(?:[ \t](?:set|changed|reset|updated))?(?:[ \t]to)?:?(?=[ \t])"
    rf"|(?:set|changed|reset)[ \t]to:"
    rf"|{_VERB}(?=[ \t:\n])(?:[ \t](?:now|currently|still|jetzt|nun|ahora|maintenant|set|changed|reset|to|the|this|auf|neu|:))*:?"
    r"|(?:set|changed|reset|updated|rotated|geändert|cambiada|changé)[ \t](?:to|as|auf|in|a|à|en)(?=[ \t:])"
    r"|(?P<to>(?:to|as|auf|a|à)(?=[ \t:]))|=>|→|->|–|—|-(?=[ \t]))"
)
_OWNER = (
    r"(?:[ \t](?:for|of|to|on|at|für|fuer|von|vom|des|der|del|de|du|da|do|para|pour|per|voor|in|im|zum|zur|al|au)"
    r"[ \t](?:[\w'’.@/-]+[ \t]?){1,5}?)?"
)
_CLOSING = r"(?:\\?[\"'`]|[\])}*_~”’»]){0,4}"
_NOTE = r"(?:[ \t]?\([^()\n]{1,48}\))?"
_STATED = re.compile(
    rf"{_CLOSING}{_NOTE}{_OWNER}[ \t]{{1,3}}{_LINK}[ \t]{{0,3}}\n?[ \t]{{0,8}}"
    r"(?:[*_]{0,3}[\"'`“„«‹‘‚](?P<marked>[^\s\"'`“”„«»‹›‘’][^\n\"'`“”„«»‹›]{2,120}?)[\"'`”“»›’]"
    r"|(?P<stars>[*_]{1,3})(?P<starred>[^\s*_][^\n]{2,120}?)(?P=stars)(?![\w*])"
    r"|(?P<bare>[^\s\"'`“”„«»<>|]{4,200}))"
)
_VALUE_NEXT_TO_NAME = re.compile(
    rf"{_CLOSING}[ \t]{{1,4}}(?:[*_]{{0,3}}[\"'`“„«](?P<marked>[^\s\"'`“”„«»]{{4,121}})[\"'`”“»]"
    r"|(?P<stars>[*_]{1,3})(?P<starred>[^\s*_][^\s]{3,120}?)(?P=stars)(?![\w*])"
    r"|\(?(?P<bare>[^\s\"'`“”„«»<>|()]{4,200}))"
)
_SENTENCE_END = re.compile(r"[.!?)*_~]*[ \t]*(?:[\r\n]|$|(?<=[.!?][ \t])[A-ZÄÖÜ¿¡])")
_PHRASED = re.compile(
    rf"{_CLOSING}{_NOTE}{_OWNER}[ \t]{{1,3}}{_LINK}[ \t]{{1,3}}"
    r"(?P<bare>[^\W\d_]{2,20}(?: [^\W\d_]{2,20}){3,7})[.!?]?[ \t]*(?=[\r\n<|]|$)"
)
_PRECEDING = re.compile(
    r"(?<![^\s\"'`*_(“])(?P<bare>[^\s\"'`<>|*_(“”]{6,200})[\"'`*_”)]{0,3}[ \t](?:is|as|was|ist|als|war|es|como|est|comme)"
    r"[ \t](?:(?:the|your|our|my|a|das|dein|la|el|le|su|sein)[ \t])?(?:[\w-]{2,16}[ \t]){0,2}\Z"
)
_CHANGED = re.compile(
    rf"{_OWNER}[ \t](?:from|von|de)[ \t](?P<former>[^\s\"'`<>|]{{6,128}})[ \t](?:to|auf|zu|a|à)[ \t]"
    r"[\"'`]?(?P<latter>[^\s\"'`<>|]{6,128})"
)
_SET_TO = re.compile(
    r"(?:[ \t][\w'’]{1,16}){0,5}?[ \t](?:auf|zu)[ \t][\"'`„]?(?P<latter>[^\s\"'`<>|“]{6,128})[\"'`“]?"
    r"[ \t](?:ge|zurückge|um)[a-zäöü]{3,12}"
)
_BARE_OF = re.compile(
    r"(?:[ \t](?:of|for|to|on|at|für|von|vom|zum|zur)[ \t](?:[\w'’.@-]+[ \t]){1,4}(?<!this[ \t])(?<!each[ \t]))(?P<latter>[^\s\"'`<>|]{4,128})"
)
_LOOSE_PATTERNS = (
    ((" from ", " von ", " de "), _CHANGED),
    ((" auf ", " zu "), _SET_TO),
    (
        (" of ", " for ", " to ", " on ", " at ", " für ", " von ", " vom ", " zum ", " zur "),
        _BARE_OF,
    ),
)
"""Patterns for the words after a name; each pattern comes with words, at least one of which must
occur."""
_IDEOGRAPHIC = "\u3000"
_GLUED = re.compile(
    r"(?:は|が|是|为|為|는|은|이|가|を)?[ \t\u3000]{0,4}[:：=＝]?[ \t\u3000「『“\"'`]{0,4}(?P<bare>[!-~]{4,128}?)"
    r"(?=[」』”\"'`\s]|[^\x00-\x7f]|$)"
)
_WORD_AFTER = re.compile(r"[*_]{1,3}[ \t][a-z]{2,}")
_GROUPS = ("marked", "starred", "bare")
_MIN_STRONG_LENGTH = 8
_MIN_TOKEN_LENGTH = 20


def find_stated(text: str, name: Name) -> Iterator[SecretSpan]:
    """Find the value that a sentence states for a name, if it is a credential."""
    limit = name.end + _REACH
    if name.text.lower() == "pass":
        return
    if name.text[0] >= _IDEOGRAPHIC:
        yield from _find_ideographic(text, name)
        return
    phrase = _PHRASED.match(text, name.end, limit)
    if phrase is not None and phrase["foreign"] is not None:
        phrase = None
    if phrase is not None and name.kind is ValueKind.PASSWORD and is_phrase(phrase["bare"]):
        yield SecretSpan(*phrase.span("bare"), _RULE)
        return
    match = _STATED.match(text, name.end, limit)
    span = _accept(text, name, match) if match is not None else None
    if span is not None and match is not None and _is_continued(text, span, match):
        span = None
    if span is None and (beside := _VALUE_NEXT_TO_NAME.match(text, name.end, limit)) is not None:
        span = _accept_after_name(text, name, beside)
    if span is None:
        span = _find_before(text, name)
    if span is not None:
        yield span
    else:
        yield from _find_changed(text, name)


def _is_continued(text: str, span: SecretSpan, match: re.Match[str]) -> bool:
    """Return whether a sentence goes on after an emphasized word: `It is **very** important`."""
    value = text[span.start : span.end]
    starred = match["starred"] is not None and value.isalpha() and value.islower()
    return starred and is_predicate(value) and _WORD_AFTER.match(text, span.end) is not None


def _find_changed(text: str, name: Name) -> Iterator[SecretSpan]:
    """Find the values of `changed the password from X to Y`, `passphrase of the stick X`."""
    if text[name.end : name.end + 1] not in {" ", "\t"}:
        return
    following = text[name.end : name.end + _REACH]
    for words, pattern in _LOOSE_PATTERNS:
        likely = any(word in following for word in words)
        match = pattern.match(text, name.end, name.end + _REACH) if likely else None
        if match is None:
            continue
        for group in match.groupdict():
            start = match.start(group)
            end = _trim_end(text, *match.span(group))
            if _is_evident_credential(name, text[start:end]):
                yield SecretSpan(start, end, _RULE)
        return


def _is_evident_credential(name: Name, value: str) -> bool:
    if is_placeholder(value) or "://" in value or value[0] in "/-.(}":
        return False
    if name.kind is ValueKind.PIN:
        return is_pin(value)
    return name.kind in {ValueKind.PASSWORD, ValueKind.KEY} and _is_evident_password(value)


def _find_ideographic(text: str, name: Name) -> Iterator[SecretSpan]:
    """Find a value stated in a script without spaces: `パスワードはXです`, `密码是X`."""
    match = _GLUED.match(text, name.end, name.end + _REACH)
    if match is None:
        return
    value = match["bare"].rstrip(".,;:")
    if is_secret_value(name.kind, value, is_quoted=False) and not is_placeholder(value):
        yield SecretSpan(match.start("bare"), match.start("bare") + len(value), _RULE)


def _accept(text: str, name: Name, match: re.Match[str]) -> SecretSpan | None:
    group = next(g for g in _GROUPS if match[g] is not None)
    marked = group != "bare"
    start, end = match.span(group)
    end = _trim_end(text, start, end)
    value = text[start:end]
    if is_placeholder(value) or name.kind is ValueKind.PAIR:
        return None
    if name.kind is ValueKind.RANDOM:
        return SecretSpan(start, end, _RULE) if is_generated(value) else None
    if name.kind is ValueKind.PIN:
        return SecretSpan(start, end, _RULE) if is_pin(value) else None
    if (
        match["to"]
        and not _is_evident_password(value)
        and not is_key(value)
        and (not marked or "-" in value)
    ):
        return None
    if name.kind is ValueKind.KEY:
        good = is_key(value, is_quoted=marked)
    elif marked:
        good = is_secret_value(ValueKind.PASSWORD, value, is_quoted=True) and not (
            value.isalpha() and value.istitle()
        )
    else:
        good = (is_bare_password(value) and _is_unlike_words(value)) or (
            match["foreign"] is None
            and is_alphabetic_password(value)
            and _is_stated(text, end, value)
        )
    return SecretSpan(start, end, _RULE) if good else None


def _accept_after_name(text: str, name: Name, match: re.Match[str]) -> SecretSpan | None:
    """Return the value directly after a name, if its form alone shows that it is a credential."""
    group = next(g for g in _GROUPS if match[g] is not None)
    start, end = match.span(group)
    end = _trim_end(text, start, end)
    value = text[start:end]
    if is_placeholder(value) or "://" in value or "=" in value[:-2] or value[0] in "/-.(}":
        return None
    if name.kind is ValueKind.KEY:
        good = len(value) >= _MIN_TOKEN_LENGTH and is_key(value)
    elif name.kind is ValueKind.PASSWORD:
        good = _is_evident_password(value)
    elif name.kind is ValueKind.RANDOM:
        good = len(value) >= _MIN_TOKEN_LENGTH and is_generated(value)
    else:
        good = name.kind is ValueKind.PIN and is_pin(value)
    return SecretSpan(start, end, _RULE) if good else None


def _is_evident_password(value: str) -> bool:
    """Return whether the form of a value alone shows a password."""
    if is_password_of_symbols(value) or is_strong(value) or is_scrambled_word(value):
        return True
    return len(value) >= _MIN_STRONG_LENGTH and is_bare_password(value) and is_mixed(value)


def _find_before(text: str, name: Name) -> SecretSpan | None:
    """Find the value X before its name: `X is the password`, `use X as the token`."""
    match = _PRECEDING.search(text, max(0, name.start - _REACH), name.start)
    if match is None or is_placeholder(match["bare"]) or name.kind is ValueKind.RANDOM:
        return None
    value = match["bare"]
    good = is_key(value) if name.kind is ValueKind.KEY else _is_evident_password(value)
    return SecretSpan(*match.span("bare"), _RULE) if good else None


def _is_unlike_words(value: str) -> bool:
    """Return whether a value is unlike words, numbers with units, dates and versions."""
    return (
        re.fullmatch(
            r"[A-Za-z]+\d{0,2}(?:[-'’/][A-Za-z]+)+[.,;:!?]*|[A-Za-z]+(?:[-'’/][A-Za-z]+)*[.,;:!?]*|v?\d+[.,:/-][\d.,:/-]*[A-Za-z]{0,8}|v?\d{1,5}[A-Za-z]{0,8}",
            value,
        )
        is None
    )


def _is_stated(text: str, end: int, value: str) -> bool:
    """Return whether a word is the password that a sentence states, and not a description."""
    if has_inner_capitals(value):
        return True
    if not _SENTENCE_END.match(text, end):
        return False
    return is_phrase(value.replace("-", " ")) if "-" in value else not is_predicate(value)


def _trim_end(text: str, start: int, end: int) -> int:
    while end > start + 1 and text[end - 1] in ".,;:)]}*_~":
        if text[end - 1] == ")" and "(" in text[start:end]:
            break
        end -= 1
    return end
