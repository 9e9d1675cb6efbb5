"""Names that promise a credential: `DB_PASSWORD`, `client secret`, `Kennwort`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rag_assets.secrets.rules import Anchor
from rag_assets.secrets.values import Promise

ANCHORS = (
    "pass", "pwd", "pw", "kennwort", "contrase", "senha", "wachtwoord", "parola", "clave",
    "lösenord", "losenord", "hasło", "haslo", "heslo", "salasana", "şifre", "пароль", "密码", "密碼",
    "パスワード", "비밀번호", "zugangsdaten", "token", "secret", "geheim", "key", "credential",
    "creds", "pin", "_auth", "login", "anmeldung", "acceso", "psk", "identifiants", "schlüssel", "jeton",
)  # fmt: skip
"""What a name that promises a credential contains, in small letters."""


@dataclass(frozen=True, slots=True)
class Name:
    """A name found in a text.

    Attributes:
        start, end: where it stands, as character offsets.
        promise: what its value is.
        written: the name as it is written.
    """

    start: int
    end: int
    promise: Promise
    written: str


_PASSWORDS = frozenset(
    """password passwords passwort passwd passwrd passphrase passcode pass pwd pw kennwort kennworte
    contraseña contrasena contraseñas senha senhas wachtwoord parola clave lösenord losenord hasło
    haslo heslo salasana şifre пароль 密码 密碼 パスワード 비밀번호 passe pswd psw userpass dbpass
    dbpassword dbpwd userpassword rootpassword adminpassword pgpassword mysqlpwd requirepass masterauth
    bindpw rootpw adminpw sudopass""".split()  # noqa: SIM905 - a list of words reads better as words
)
_KEYS = frozenset(
    """token tokens secret secrets apikey apikeys accesskey secretkey privatekey clientsecret appsecret
    authtoken accesstoken refreshtoken bearertoken sessiontoken credential credentials authkey
    accountkey sharedaccesskey encryptionkey masterkey signingkey appkey geheimnis jeton
    zugangsschlüssel apischlüssel schlüssel secretaccesskey presharedkey psk webhooksecret
    sharedsecret consumersecret""".split()  # noqa: SIM905 - as above
)
_KEYED = frozenset(
    """api access secret private encryption encrypt signing sign account shared auth authentication
    master service storage app application client webhook subscription deploy deployment license
    session admin integration write routing ingest function signature hmac jwt cookie consumer bot
    bearer preshared decryption cipher crypto vault activation recovery backup user rest project
    server team org organization personal root api_secret stripe openai anthropic datadog github
    gitlab slack twilio sendgrid mailgun heroku cloudflare algolia azure gcp google aws firebase
    pagerduty fastly snyk sentry newrelic""".split()  # noqa: SIM905 - as above
)
_PAIRS = frozenset({"zugangsdaten", "creds", "credentials", "identifiants", "login", "logins", "anmeldung", "acceso",
                    "credenciales"})  # fmt: skip
_PASSWORD_ENDS = (
    "password",
    "passwd",
    "passwort",
    "kennwort",
    "passphrase",
    "storepass",
    "keypass",
)
_KEY_ENDS = ("token", "secret", "apikey", "accesskey", "secretkey")
_NEUTRAL = frozenset(
    """prod production dev development test testing staging stage live default value text plain old
    new root admin user db database base base64 b64 primary secondary temp temporary current raw env
    main backup local remote here now es is readonly ro rw write read master slave replica app web
    api smtp imap ftp ssh mysql postgres pg redis mongo ldap wifi wlan vpn s""".split()  # noqa: SIM905
)
_IDENTIFIER = re.compile(r"[\w.$-]*")
_LEFT_REACH = 64
_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[^\W\d_A-Z]+|\d+")
_BEFORE = re.compile(r"([A-Za-z]{2,16})[ \t]\Z")
_OF_PASSE = re.compile(r"mots? de \Z", re.IGNORECASE)
_PIN = re.compile(r"(?:PIN|Pin|pin)(?:[ -]?(?:code|Code|CODE))?\Z")


def find_names(text: str, anchors: Sequence[Anchor]) -> Iterator[Name]:
    """Find the names that promise a credential, in order, each once."""
    done = 0
    for anchor in anchors:
        if anchor.start < done:
            continue
        start = _begin(text, anchor.start)
        found = _IDENTIFIER.match(text, anchor.start, anchor.end + _LEFT_REACH)
        end = found.end() if found else anchor.end
        while end > anchor.end and text[end - 1] in ".-_$":
            end -= 1
        done = end
        promise, start = _promise(text, start, end)
        if promise is not None:
            yield Name(start, end, promise, text[start:end])


def promise_of(name: str) -> Promise | None:
    """Tell what a name by itself promises, as of a column or an attribute; None: nothing."""
    bare = name.strip(" \t*_`\"':")
    bare = re.sub(r"\s*\([^()]*\)$", "", bare)
    return _promise(bare, 0, len(bare))[0] if len(bare) <= _LEFT_REACH else None


def _begin(text: str, at: int) -> int:
    low = max(0, at - _LEFT_REACH)
    while at > low and (text[at - 1].isalnum() or text[at - 1] in "_.-$"):
        at -= 1
    return at


def _promise(text: str, start: int, end: int) -> tuple[Promise | None, int]:
    """What the name between two offsets promises, and where it begins with the word before."""
    words = [word.lower() for word in _WORDS.findall(text[start:end])]
    if words[:2] == ["1", "password"]:
        return None, start
    while len(words) > 1 and (words[-1].isdigit() or words[-1] in _NEUTRAL):
        words.pop()
    last = words[-1] if words else ""
    if last in {"key", "keys"}:
        return _keyed(text, start, words)
    if last == "passe":
        return (Promise.PASSWORD if _OF_PASSE.search(text, 0, start) else None), start
    if text[start:end] in {"_auth", ":_auth"}:
        return Promise.KEY, start
    if _PIN.search(text[start:end]):
        return Promise.PIN, start
    return _promise_of_word(last), start


def _promise_of_word(word: str) -> Promise | None:
    if word in _PASSWORDS or word.endswith(_PASSWORD_ENDS):
        return Promise.PASSWORD
    if word in _PAIRS:
        return Promise.PAIR
    if word in _KEYS or word.endswith(_KEY_ENDS):
        return Promise.KEY
    return None


def _keyed(text: str, start: int, words: list[str]) -> tuple[Promise | None, int]:
    """Whether a key is one that opens something, by the word before it."""
    if len(words) > 1:
        return (Promise.KEY if words[-2] in _KEYED else None), start
    before = _BEFORE.search(text, max(0, start - 20), start)
    if before is not None and before[1].lower() in _KEYED:
        return Promise.KEY, before.start(1)
    return None, start
