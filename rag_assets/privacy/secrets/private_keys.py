"""Private keys: blocks between BEGIN and END, PuTTY keys, and key bodies without these lines."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator, Sequence

from rag_assets.privacy.secrets.rules import Anchor, Rule
from rag_assets.privacy.secrets.spans import SecretSpan

_NAME = "private-key"
_KEY_REACH = 16_384
_LINE_REACH = 1_000
_BEGIN = re.compile(r"BEGIN (?:[A-Z0-9]{1,12} ){0,4}PRIVATE KEY")
_RSA_LINE = re.compile("BEGIN RSA(?! PUBLIC)")
_END = re.compile(r"END (?:[A-Z0-9]{1,12} ){0,4}PRIVATE KEY(?: BLOCK)?[ ]?[-‐-―]{0,8}")
_KEY_CHARACTERS = re.compile(r"[A-Za-z0-9+/=]{12,}")
_DASHES = "-‐‑‒–—―"
_KEY_BODY = re.compile(
    r"(?: BLOCK)?[ ]?[-‐-―]{0,8}"
    r"(?:(?:[\s>|\"'+,#*;\xad]|//|\\[nr])*"
    r"(?:[A-Za-z0-9+/=]{16,}|(?:Proc-Type|DEK-Info|Version|Comment): ?[^\n]{0,80}))*"
    r"(?:\r?\n[ \t>#*;]*[A-Za-z0-9+/]{1,64}={0,2}(?=\r?\n|$))?"
)
_MARKUP = re.compile(r"[\s>#*+-]*")
_LINE = r"(?:[ \t]*(?:\r?\n|\\r?\\n|\\n)[ \t>|#*;/\"'+]*)"
_PUTTY = re.compile(rf"private-lines:[ \t]*\d{{1,4}}(?={_LINE})", re.IGNORECASE)
_PUTTY_BODY = re.compile(
    rf"(?:{_LINE}[A-Za-z0-9+/=]{{16,}})*(?:{_LINE}[A-Za-z0-9+/]{{1,64}}={{0,2}}(?=[ \t]*(?:[\r\n\\]|$)))?"
    rf"(?:{_LINE}Private-MAC:[ \t]*[0-9a-fA-F]{{16,}})?",
    re.IGNORECASE,
)
_BODY = re.compile(
    rf"[A-Za-z0-9+/]{{32,}}={{0,2}}(?:{_LINE}[A-Za-z0-9+/]{{16,}}={{0,2}})*"
    rf"(?:{_LINE}[A-Za-z0-9+/]{{1,64}}={{1,2}}(?![A-Za-z0-9]))?"
)
_HEAD_LENGTH = 32
_MIN_BODY_LENGTH = 60
_BASE64 = re.compile(r"[A-Za-z0-9+/]*")
_OPENSSH = b"openssh-key-v1\0"
_LONG_FORM = 0x80
_SEQUENCE, _INTEGER, _OBJECT, _OCTETS = 0x30, 0x02, 0x06, 0x04
_PKCS5 = bytes.fromhex("2a864886f70d0105")  # the identifiers of password-based encryption


def _find_blocks(text: str, anchors: Sequence[Anchor]) -> Iterator[SecretSpan]:
    """Find each key, from its BEGIN line to its END line or to the end of its base64."""
    done = 0
    for anchor in anchors:
        if anchor.start < done or (begin := _BEGIN.match(text, anchor.start)) is None:
            continue
        start = begin.start()
        while start and text[start - 1] in _DASHES + " ":
            start -= 1
        while text[start] == " ":
            start += 1
        done = _find_key_end(text, begin.end())
        if _KEY_CHARACTERS.search(text, begin.end(), done):
            yield SecretSpan(start, done, _NAME)


def _find_key_end(text: str, after: int) -> int:
    reach = after + _KEY_REACH
    following = _BEGIN.search(text, after, reach)
    end = _END.search(text, after, following.start() if following else reach)
    if end is not None:
        return end.end()
    body = _KEY_BODY.match(text, after, reach)
    return body.end() if body else after


def _find_rsa_lines(text: str, anchors: Sequence[Anchor]) -> Iterator[SecretSpan]:
    """Find lines with BEGIN RSA that start no block; the span excludes leading markup."""
    done = 0
    for anchor in anchors:
        if anchor.start < done or not _RSA_LINE.match(text, anchor.start):
            continue
        if _BEGIN.match(text, anchor.start):
            continue
        low = max(done, anchor.start - _LINE_REACH)
        start = max(low, text.rfind("\n", low, anchor.start) + 1)
        end = text.find("\n", anchor.end, anchor.end + _LINE_REACH)
        done = end if end >= 0 else min(len(text), anchor.end + _LINE_REACH)
        markup = _MARKUP.match(text, start, anchor.start)
        yield SecretSpan(markup.end() if markup else start, done, _NAME)


def _find_putty_keys(text: str, anchors: Sequence[Anchor]) -> Iterator[SecretSpan]:
    """Find the private lines of a PuTTY key, with their message authentication code."""
    for anchor in anchors:
        if head := _PUTTY.match(text, anchor.start):
            body = _PUTTY_BODY.match(text, head.end(), head.end() + _KEY_REACH)
            if body and body[0].strip():
                yield SecretSpan(head.end(), body.end(), "putty-key")


def _find_bodies(text: str, anchors: Sequence[Anchor]) -> Iterator[SecretSpan]:
    """Find bodies of keys without BEGIN and END lines, recognized by their decoded content."""
    done = 0
    for anchor in anchors:
        if anchor.start < done:
            continue
        body = _BODY.match(text, anchor.start, anchor.start + _KEY_REACH)
        if body is None or not _is_key_start(text[anchor.start : anchor.start + _HEAD_LENGTH]):
            run = _BASE64.match(text, anchor.start)
            done = run.end() if run else anchor.end
        elif len(body[0]) >= _MIN_BODY_LENGTH:
            done = body.end()
            yield SecretSpan(anchor.start, done, "private-key-body")


def _is_key_start(head: str) -> bool:
    """Return whether base64 starts a private key: PKCS#1, PKCS#8, SEC 1 or OpenSSH."""
    try:
        raw = base64.b64decode(head)
    except (binascii.Error, ValueError):
        return False
    if raw.startswith(_OPENSSH):
        return True
    inner = _read_der_sequence(raw)
    if inner[:1] == bytes([_INTEGER]):  # version first: a certificate has a sequence there
        version = inner[2:3]
        kind = inner[3:4]
        return inner[1:2] == b"\x01" and (
            (version == b"\x00" and kind in (bytes([_SEQUENCE]), bytes([_INTEGER])))
            or (version == b"\x01" and kind in (bytes([_OCTETS]), bytes([_SEQUENCE])))
        )
    identifier = _read_der_sequence(inner)
    return identifier[:1] == bytes([_OBJECT]) and identifier[2:].startswith(_PKCS5)


def _read_der_sequence(der: bytes) -> bytes:
    """Return the content of a DER sequence; empty if the bytes are not a sequence."""
    if len(der) < _INTEGER or der[0] != _SEQUENCE:
        return b""
    size = der[1]
    return der[2 + (size - _LONG_FORM) :] if size > _LONG_FORM else der[2:]


RULES: Sequence[Rule] = (
    Rule(("begin ",), _find_blocks),
    Rule(("begin rsa",), _find_rsa_lines),
    Rule(("private-lines:",), _find_putty_keys),
    Rule(("mii", "mhcc", "migh", "mc4c", "mgsc", "mihc", "b3blbnnzac1rzxkt"), _find_bodies),
)
