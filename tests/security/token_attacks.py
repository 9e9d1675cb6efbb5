"""Authorization headers of attacks, none of which may be accepted."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import time
from collections.abc import Iterator
from typing import Any

_ALGORITHMS = ("HS384", "HS512", "RS256", "ES256", "PS256", "EdDSA", "hs256", "HS256 ", "", "*")
_NONE = ("none", "None", "NONE", "nOnE", " none", "none\0", None, 0, False, [], {})
_KEY_HEADERS: tuple[dict[str, Any], ...] = (
    {"kid": "../../../../dev/null"},
    {"kid": "x' UNION SELECT 'key"},
    {"kid": "|cat /etc/passwd"},
    {"kid": {"a": 1}},
    {"kid": ""},
    {"jku": "https://evil.example/keys.json"},
    {"x5u": "https://evil.example/cert.pem"},
    {"x5c": ["MIIB"]},
    {"jwk": {"kty": "oct", "k": "ZXZpbA"}},
    {"cty": "JWT"},
    {"typ": "at+jwt"},
)
_CRITICAL = ({"crit": ["b64"], "b64": False}, {"crit": ["evil"]}, {"crit": []}, {"crit": "b64"})
_CLAIMS: tuple[dict[str, Any], ...] = (
    {"exp": None},
    {"exp": 1_000},
    {"exp": "never"},
    {"exp": []},
    {"exp": True},
    {"exp": -1},
    {"nbf": 4_000_000_000},
    {"nbf": "later"},
    {"iat": "now"},
    {"iat": 4_000_000_000},
    {"iss": None},
    {"iss": "https://sign.example.evil.example"},
    {"iss": "https://SIGN.example"},
    {"iss": ["https://evil.example"]},
    {"iss": ""},
    {"sub": None},
    {"sub": ""},
    {"sub": 7},
    {"sub": ["ada", "bob"]},
    {"sub": []},
    {"sub": {"name": "ada"}},
    {"sub": "group:crew"},
    {"sub": "ada\0"},
    {"sub": "ada\nbob"},
    {"sub": "\ud800"},
    {"sub": "a" * 1_001},
    {"role": "owner"},
    {"role": "ADMIN"},
    {"role": ["admin"]},
    {"role": None},
    {"role": True},
    {"role": ""},
    {"groups": "crew\0"},
    {"groups": {"crew": True}},
    {"groups": [["crew"]]},
    {"groups": [""]},
    {"groups": ["g"] * 10_000},
    {"groups": 7},
    {"groups": None},
    {"tenants": None},
    {"tenants": {"left": True}},
    {"tenants": [None]},
    {"tenants": [1]},
    {"tenants": ["left", ""]},
    {"tenants": 1},
    {"tenants": [["left"]]},
)


def encoded(value: Any) -> str:
    """Return a segment of a JWT."""
    return _part(json.dumps(value).encode())


def _part(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def signed(header: Any, claims: Any, secret: str, digest: str = "sha256") -> str:
    """Sign a JWT by hand, because libraries refuse to write most of these."""
    text = f"{encoded(header)}.{encoded(claims)}"
    return f"{text}.{_part(hmac.new(secret.encode(), text.encode(), digest).digest())}"


def attacks(good: dict[str, Any], secret: str, service_token: str) -> Iterator[tuple[str, str]]:
    """Yield each attack's name and Authorization header.

    Args:
        good: valid claims.
        secret: with which the service verifies signatures.
        service_token: a valid one.
    """
    head = {"alg": "HS256", "typ": "JWT"}
    token = signed(head, good, secret)
    for name, value in _without_a_signature(head, good, secret, token):
        yield name, f"Bearer {value}"
    for changes in _CLAIMS:
        claims = {**good, **changes}
        removed = {k for k, v in changes.items() if v is None and k in {"exp", "iss", "sub"}}
        kept = {k: v for k, v in claims.items() if k not in removed}
        yield f"claims {str(changes)[:40]}", f"Bearer {signed(head, kept, secret)}"
    for header in _CRITICAL:
        yield f"header {header}", f"Bearer {signed({**head, **header}, good, secret)}"
    for name, value in _service_tokens(service_token):
        yield name, f"Bearer {value}"
    yield from _headers(token, service_token)


def _without_a_signature(
    head: dict[str, Any], good: dict[str, Any], secret: str, token: str
) -> Iterator[tuple[str, str]]:
    first, claims, signature = token.split(".")
    for algorithm in _NONE:
        bare = f"{encoded({**head, 'alg': algorithm})}.{claims}."
        yield f"alg {algorithm!r}", bare
        yield f"alg {algorithm!r} with the signature of another", bare + signature
    for algorithm in _ALGORITHMS:
        yield f"alg {algorithm!r}", signed({**head, "alg": algorithm}, good, secret)
    for header in _KEY_HEADERS:
        yield f"key of ours by {header}", signed({**head, **header}, good, "evil" * 10)
    for guessed in ("", "secret", "null", "0" * 64, hashlib.sha256(secret.encode()).hexdigest()):
        yield f"signed with {guessed[:8]!r}", signed(head, good, guessed)
    others = encoded({**good, "tenants": ["left", "right"], "role": "admin"})
    yield "claims of another token", f"{first}.{others}.{signature}"
    yield "no signature", f"{first}.{claims}"
    yield "an empty signature", f"{first}.{claims}."
    yield "half a signature", f"{first}.{claims}.{signature[:20]}"
    yield "a longer signature", f"{first}.{claims}.{signature}AAAA"
    yield "four parts", f"{token}.{signature}"
    yield "five parts", f"{token}.{signature}.{signature}"
    yield "parts in another order", f"{claims}.{first}.{signature}"
    yield "no header", f".{claims}.{signature}"
    yield "a list for claims", signed(head, ["ada"], secret)
    yield "a text for claims", signed(head, "ada", secret)
    yield "nothing for claims", signed(head, None, secret)
    yield "a very long one", signed(head, {**good, "more": "x" * 20_000}, secret)
    yield "HMAC of another length", signed(head, good, secret, "sha512")
    for at in (0, 10, 20, 30, 40):
        turned = "A" if signature[at] != "A" else "B"
        yield (
            f"a character {at} changed",
            f"{first}.{claims}.{signature[:at]}{turned}{signature[at + 1 :]}",
        )


def _service_tokens(token: str) -> Iterator[tuple[str, str]]:
    yield "a service token cut", token[:-1]
    yield "a service token and more", token + "A"
    yield "a service token in capitals", token.upper()
    yield "a service token of other letters", token.swapcase()
    yield "a service token's prefix twice", "rag_" + token
    yield "a service token without its prefix", token.removeprefix("rag_")
    yield "a service token's hash", "rag_" + hashlib.sha256(token.encode()).hexdigest()
    yield "the prefix alone", "rag_"
    yield "a wildcard", "rag_%"
    yield "SQL", "rag_' OR '1'='1"
    yield "a zero byte", token + "\0"
    yield "half of a pair", "rag_\ud800"
    yield "two at once", f"{token} {token}"
    yield "with a comma", f"{token},"


def _headers(token: str, service_token: str) -> Iterator[tuple[str, str]]:
    for scheme in ("", "Basic ", "Token ", "Digest ", "Bearer:", "Bearer=", "Bearer,", "bearer\t"):
        yield f"scheme {scheme!r}", f"{scheme}{token}"
        yield f"scheme {scheme!r}, service token", f"{scheme}{service_token}"
    basic = base64.b64encode(f"x:{service_token}".encode()).decode()
    yield "Basic with a service token", f"Basic {basic}"
    yield "Bearer twice", f"Bearer Bearer {token}"
    yield "in quotes", f'Bearer "{token}"'
    yield "nothing", "Bearer"
    yield "a blank", "Bearer  "


def good_claims(issuer: str, tenant: str) -> dict[str, Any]:
    """Return claims that are valid for five minutes."""
    claims = {"sub": "ada", "iss": issuer, "exp": int(time.time()) + 300}
    return {**claims, "tenants": [tenant], "groups": ["crew"], "role": "member"}
