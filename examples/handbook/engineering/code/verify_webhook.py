"""Check the signature of a Tarnbrook webhook: the example that merchants are given.

The header `Tarnbrook-Signature` looks like `t=1772428500,v1=5257a8…`: the second when we signed,
and HMAC-SHA256 over that number, a full stop and the raw body, as lower-case hexadecimal digits.
While a signing key is being rotated there are two `v1` parts, one for each key; either is enough.
"""

import hashlib
import hmac
import time

TOLERANCE = 300
"""Seconds by which our clock and yours may differ; an older delivery may be a replay."""


class BadSignature(Exception):
    """The request does not come from Tarnbrook, or is too old. Answer 400 and do nothing else."""


def verify(header: str, body: bytes, signing_key: bytes, now: float | None = None) -> None:
    """Raise BadSignature unless the body was signed with the key during the past five minutes.

    Take the body as it came over the wire. JSON that was parsed and written again is no longer the
    same bytes: this is the reason for nine in ten of the questions that merchants send us.
    """
    parts = [part.partition("=")[::2] for part in header.split(",")]
    moments = [value for name, value in parts if name == "t"]
    if len(moments) != 1 or not moments[0].isdecimal():
        raise BadSignature("the header names no moment of signing")
    age = abs((time.time() if now is None else now) - int(moments[0]))
    if age > TOLERANCE:
        raise BadSignature(f"signed {age:.0f} seconds ago")
    expected = hmac.new(signing_key, moments[0].encode() + b"." + body, hashlib.sha256).hexdigest()
    # compare_digest takes as long for a wrong signature as for one that is nearly right.
    if not any(hmac.compare_digest(value, expected) for name, value in parts if name == "v1"):
        raise BadSignature("no signature fits")


def already_seen(event_id: str, seen: set[str]) -> bool:
    """Whether an event was handled before: we deliver at least once, after an outage often twice.

    Remember identifiers for 72 hours: that is how long we go on trying.
    """
    if event_id in seen:
        return True
    seen.add(event_id)
    return False
