"""Keys that are recognized only by the name before them, and passwords that people choose."""

from __future__ import annotations

from random import Random

from tests.security.credentials.model import Credential, Family, Kind
from tests.security.credentials.values import (
    ALNUM,
    DIGITS,
    LETTERS,
    URLSAFE,
    base64_of,
    chars,
    hexa,
    uuid,
    whole,
)

_WORDS = (
    "harbor",
    "Winter",
    "lantern",
    "Zebra",
    "copper",
    "meadow",
    "Falcon",
    "pickle",
    "thunder",
    "Orchid",
    "violin",
    "granite",
    "Saturn",
    "walnut",
    "marble",
    "Tiger",
    "cobalt",
    "puffin",
    "Sommer",
    "Regen",
    "kaffee",
    "Montag",
    "sol",
    "luna",
    "gato",
    "perro",
    "soleil",
    "maison",
)
_SYMBOLS = "!#%*+-?@^~=_$"
_NAMES = (
    "DB_PASSWORD",
    "ADMIN_PASSWORD",
    "SMTP_PASSWORD",
    "MYSQL_ROOT_PASSWORD",
    "REDIS_PASSWORD",
    "POSTGRES_PASSWORD",
    "KEYCLOAK_ADMIN_PASSWORD",
    "LDAP_BIND_PASSWORD",
    "DB_PASS",
)
_GENERIC = ("API_KEY", "SECRET_KEY", "AUTH_TOKEN", "CLIENT_SECRET", "ACCESS_TOKEN", "PRIVATE_TOKEN")
_LABELS = {
    "API_KEY": "API key",
    "SECRET_KEY": "secret key",
    "AUTH_TOKEN": "auth token",
    "CLIENT_SECRET": "client secret",
    "ACCESS_TOKEN": "access token",
    "PRIVATE_TOKEN": "private token",
}


def _generic(rng: Random, text: str) -> Credential:
    name = rng.choice(_GENERIC)
    return whole(text, name, _LABELS[name])


def _password(rng: Random, text: str) -> Credential:
    return whole(text, rng.choice(_NAMES), "password")


def _aws_secret(rng: Random) -> Credential:
    return whole(chars(rng, ALNUM + "+/", 40), "AWS_SECRET_ACCESS_KEY", "secret access key")


def _django(rng: Random) -> Credential:
    text = chars(rng, "abcdefghijklmnopqrstuvwxyz0123456789!@#$%^*(-_=+)", 50)
    return whole("x" + text[1:], "SECRET_KEY", "secret key")


def _laravel(rng: Random) -> Credential:
    start = "base" + "64:"
    body = base64_of(rng, 32)
    text = start + body
    return Credential(text, ((len(start), len(text)),), ((0, len(start)),), "APP_KEY", "app key")


def _wireguard(rng: Random) -> Credential:
    return whole(base64_of(rng, 32), "PRIVATE_KEY", "private key")


def _account_key(rng: Random) -> Credential:
    return whole(base64_of(rng, 64), "AZURE_STORAGE_KEY", "account key")


def _words_digits(rng: Random) -> Credential:
    text = rng.choice(_WORDS) + rng.choice(_WORDS).title() + chars(rng, DIGITS, rng.randint(2, 4))
    return _password(rng, text + rng.choice(["", "!", "#"]))


def _words(rng: Random, joint: str) -> Credential:
    return _password(rng, joint.join(w.lower() for w in rng.sample(_WORDS, 4)))


def _random(rng: Random) -> Credential:
    middle = chars(rng, ALNUM + _SYMBOLS, rng.randint(8, 18))
    return _password(rng, chars(rng, LETTERS, 2) + middle + chars(rng, DIGITS, 1))


def _letters(rng: Random) -> Credential:
    parts = [rng.choice("bdfgklmnprstvz") + rng.choice("aeiou") for _ in range(rng.randint(4, 6))]
    return _password(rng, "".join(parts) + rng.choice(["x", "qu", "th", "zz"]))


def _mixed_letters(rng: Random) -> Credential:
    return _password(rng, "q" + chars(rng, LETTERS, 10) + "Z")


def _symbols(rng: Random) -> Credential:
    first = rng.choice("!%+?@^")
    return _password(rng, first + "".join(rng.choices("!#%*+?@^~=$", k=rng.randint(7, 11))))


def _short(rng: Random) -> Credential:
    text = chars(rng, LETTERS, rng.randint(2, 4)) + chars(rng, DIGITS, 3)
    return _password(rng, text + rng.choice("!?#"))


def _pin(rng: Random) -> Credential:
    return whole(chars(rng, DIGITS, rng.randint(6, 8)), "CARD_PIN", "PIN")


def _kind(name: str, family: Family, setting: str, label: str, length: int) -> Kind:
    return Kind(name, family, lambda rng: whole(hexa(rng, length), setting, label))


KINDS: tuple[Kind, ...] = (
    Kind("aws-secret", "named", _aws_secret),
    Kind("azure-account-key", "named", _account_key),
    _kind("datadog-api", "named", "DD_API_KEY", "Datadog API key", 32),
    _kind("datadog-app", "named", "DD_APP_KEY", "Datadog app key", 40),
    Kind(
        "pagerduty",
        "named",
        lambda r: whole("u+" + chars(r, URLSAFE, 18), "PAGERDUTY_TOKEN", "PagerDuty token"),
    ),
    _kind("twilio-auth", "named", "TWILIO_AUTH_TOKEN", "auth token", 32),
    Kind("heroku-uuid", "named", lambda r: whole(uuid(r), "HEROKU_API_KEY", "Heroku API key")),
    Kind("django", "named", _django),
    Kind("laravel", "named", _laravel),
    Kind("wireguard", "named", _wireguard),
    Kind("hex-32", "named", lambda r: _generic(r, hexa(r, 32))),
    Kind("hex-40", "named", lambda r: _generic(r, hexa(r, 40))),
    Kind("hex-64", "named", lambda r: _generic(r, hexa(r, 64))),
    Kind("base64-32", "named", lambda r: _generic(r, base64_of(r, 32))),
    Kind("uuid-key", "named", lambda r: _generic(r, uuid(r))),
    Kind("alnum-20", "named", lambda r: _generic(r, chars(r, ALNUM, 19) + "7")),
    Kind("alnum-40", "named", lambda r: _generic(r, chars(r, URLSAFE, 40))),
    Kind("password-words-digits", "password", _words_digits),
    Kind("password-blanks", "password", lambda r: _words(r, " ")),
    Kind("password-dashes", "password", lambda r: _words(r, "-")),
    Kind("password-random", "password", _random),
    Kind("password-letters", "password", _letters),
    Kind("password-mixed-letters", "password", _mixed_letters),
    Kind("password-symbols", "password", _symbols),
    Kind("password-short", "password", _short),
    Kind("pin", "password", _pin),
)
