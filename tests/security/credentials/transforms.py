"""Transforms of credentials before they are inserted: escaping, encoding, wrapping."""

from __future__ import annotations

import base64
import html
from collections.abc import Callable
from dataclasses import replace
from random import Random

from tests.security.credentials.model import Credential, Span

_LOOK_ALIKES = dict(zip("aceopxyABCEHKMOPTXk", "асеорхуАВСЕНКМОРТХк", strict=True))


def _by_character(credential: Credential, written: Callable[[int, str], str]) -> Credential:
    """Replace each character, and adapt the spans."""
    parts = [written(i, c) for i, c in enumerate(credential.text)]
    at = [0]
    for part in parts:
        at.append(at[-1] + len(part))

    def moved(spans: tuple[Span, ...]) -> tuple[Span, ...]:
        return tuple((at[start], at[end]) for start, end in spans)

    return replace(
        credential, text="".join(parts), spans=moved(credential.spans), may=moved(credential.may)
    )


def json_escaped(credential: Credential, _: Random) -> Credential:
    """Escape as a JSON string, without quotes."""
    escapes = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t"}
    return _by_character(credential, lambda _, c: escapes.get(c, c))


def xml_escaped(credential: Credential, _: Random) -> Credential:
    """Escape as text or an attribute of XML or HTML."""
    return _by_character(credential, lambda _, c: html.escape(c))


def csv_escaped(credential: Credential, _: Random) -> Credential:
    """Escape as a quoted CSV cell, without quotes."""
    return _by_character(credential, lambda _, c: '""' if c == '"' else c)


def full_width(credential: Credential, _: Random) -> Credential:
    """Write in full-width characters, as East Asian keyboards and some PDFs do."""
    return _by_character(credential, lambda _, c: chr(ord(c) + 0xFEE0) if "!" <= c <= "~" else c)


def look_alikes(credential: Credential, rng: Random) -> Credential:
    """Replace one or two letters with Cyrillic lookalikes."""
    places = [i for i, c in enumerate(credential.text) if c in _LOOK_ALIKES]
    chosen = set(rng.sample(places, min(2, len(places))))
    return _by_character(credential, lambda i, c: _LOOK_ALIKES[c] if i in chosen else c)


def _with_inside(mark: str, count: int) -> Callable[[Credential, Random], Credential]:
    def transform(credential: Credential, rng: Random) -> Credential:
        start, end = credential.spans[0]
        chosen = set(rng.sample(range(start + 1, end - 1), min(count, end - start - 2)))
        return _by_character(credential, lambda i, c: mark + c if i in chosen else c)

    return transform


zero_width = _with_inside("\u200b", 2)
joiners = _with_inside("\u2060", 1)
soft_hyphens = _with_inside("\u00ad", 2)
byte_order_mark = _with_inside("\ufeff", 1)


def _wrapped(joint: str) -> Callable[[Credential, Random], Credential]:
    def transform(credential: Credential, rng: Random) -> Credential:
        start, end = credential.spans[0]
        third = (end - start) // 3
        at = rng.randint(start + third, end - third)
        return _by_character(credential, lambda i, c: joint + c if i == at else c)

    return transform


wrapped = _wrapped("\n")
wrapped_indented = _wrapped("\n    ")
wrapped_crlf = _wrapped("\r\n")


def _all_of(text: str, credential: Credential) -> Credential:
    return replace(credential, text=text, spans=((0, len(text)),), may=())


def in_base64(credential: Credential, _: Random) -> Credential:
    """Encode the whole text in base64."""
    return _all_of(base64.b64encode(credential.text.encode()).decode(), credential)


def in_url_base64(credential: Credential, _: Random) -> Credential:
    """Encode the whole text in base64 for URLs, without padding."""
    text = base64.urlsafe_b64encode(credential.text.encode()).decode().rstrip("=")
    return _all_of(text, credential)


def in_hex(credential: Credential, _: Random) -> Credential:
    """Encode the whole text in hexadecimal digits."""
    return _all_of(credential.text.encode().hex(), credential)


def percent_encoded(credential: Credential, _: Random) -> Credential:
    """Percent-encode all characters except letters and digits."""
    return _by_character(credential, lambda _, c: c if c.isascii() and c.isalnum() else _percent(c))


def all_percent_encoded(credential: Credential, _: Random) -> Credential:
    """Percent-encode every character."""
    return _by_character(credential, lambda _, c: _percent(c))


def _percent(text: str) -> str:
    return "".join(f"%{byte:02X}" for byte in text.encode())


def _lines_begin_with(mark: str) -> Callable[[Credential, Random], Credential]:
    def transform(credential: Credential, _: Random) -> Credential:
        return _by_character(credential, lambda _, c: c + mark if c == "\n" else c)

    return transform


indented_2 = _lines_begin_with("  ")
indented_4 = _lines_begin_with("    ")
indented_8 = _lines_begin_with("        ")
quoted_mail = _lines_begin_with("> ")
commented = _lines_begin_with("# ")
commented_slashes = _lines_begin_with("// ")
commented_star = _lines_begin_with(" * ")
diff_added = _lines_begin_with("+")
tabbed = _lines_begin_with("\t")


def one_line(credential: Credential, _: Random) -> Credential:
    r"""Join the lines with the two characters \n."""
    return _by_character(credential, lambda _, c: "\\n" if c == "\n" else c)


def blanks_for_lines(credential: Credential, _: Random) -> Credential:
    """Join the lines with spaces, as a table cell or a form field does."""
    return _by_character(credential, lambda _, c: " " if c == "\n" else c)


def crlf(credential: Credential, _: Random) -> Credential:
    """Use the line ends of Windows."""
    return _by_character(credential, lambda _, c: "\r\n" if c == "\n" else c)


def breaks(credential: Credential, _: Random) -> Credential:
    """Use <br> for line ends."""
    return _by_character(credential, lambda _, c: "<br>\n" if c == "\n" else c)


def concatenated(credential: Credential, _: Random) -> Credential:
    """Split into string literals joined by plus signs."""
    return _by_character(credential, lambda _, c: '\\n" +\n    "' if c == "\n" else c)


def long_enough(credential: Credential) -> bool:
    """Return whether the secret is long enough to be wrapped, or recognized when encoded."""
    start, end = credential.spans[0]
    return end - start >= 20


def without_single_quotes(credential: Credential) -> bool:
    """Return whether it can be enclosed in single quotes."""
    return "'" not in credential.text


def without_double_quotes(credential: Credential) -> bool:
    """Return whether it can be enclosed in double quotes."""
    return '"' not in credential.text


def without_quotes(credential: Credential) -> bool:
    """Return whether it contains no quotes."""
    return without_single_quotes(credential) and without_double_quotes(credential)


def without_slashes(credential: Credential) -> bool:
    """Return whether it contains no slash, so that a slash can delimit it."""
    return "/" not in credential.text


def without_blanks(credential: Credential) -> bool:
    """Return whether it is one word."""
    return " " not in credential.text


def with_a_digit(credential: Credential) -> bool:
    """Return whether it contains a digit."""
    return any(map(str.isdigit, credential.text))


def is_an_address(credential: Credential) -> bool:
    """Return whether it is a URI or a connection string."""
    return "://" in credential.text.split(" ")[0] or ";" in credential.text
