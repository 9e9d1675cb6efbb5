"""Names of credentials: `DB_PASSWORD`, `client secret`, `Kennwort`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rag_assets.privacy.secrets.rules import Anchor
from rag_assets.privacy.secrets.values import ValueKind

ANCHORS = (
    "pass", "pwd", "pw", "kennwort", "contrase", "senha", "wachtwoord", "parola", "clave",
    "lösenord", "losenord", "hasło", "haslo", "heslo", "salasana", "şifre", "пароль", "密码", "密碼",
    "パスワード", "비밀번호", "zugangsdaten", "token", "secret", "geheim", "key", "credential",
    "creds", "pin", "puk", "session", "sid", "csrf", "mdp", "clé", "chiave", "chave", "sleutel", "klucz",
    "ключ", "парола", "adgangskode", "kodeord", "passord", "jelszó", "κωδικός", "lozinka", "kata sandi",
    "كلمة المرور", "كلمة السر", "סיסמה", "पासवर्ड", "암호", "패스워드", "비번", "parolă",
    "palavra-passe", "contrasenya", "zugang", "losungswort", "passwörter", "токен", "пин", "密钥", "令牌",
    "秘密鍵", "キー", "トークン", "토큰", "키", "暗証番号", "口令", "_auth", "login", "anmeldung", "acceso",
    "رمز عبور", "گذرواژه", "รหัสผ่าน", "mật khẩu", "psk", "identifiants", "schlüssel", "jeton", "pat ", "pat:", "pat=", "pat\"", "totp", "2fa",
    "adgangskod", "zapork", "geslo", "parool", "salasõna", "slaptažod", "lykilorð", "aðgangsorð", "pasahitz",
    "contrasinal", "fjalëkalim", "wagwoord", "nenosiri", "kata laluan", "şifrə", "нууц үг", "құпия сөз", "лозинк", "jelszav",
    "գաղտնաբառ", "პაროლი", "পাসওয়ার্ড", "கடவுச்சொல்", "పాస్‌వర్డ్", "પાસવર્ડ", "പാസ്‌വേഡ്", "ಪಾಸ್‌ವರ್ಡ್", "ਪਾਸਵਰਡ",
    "මුරපදය", "ລະຫັດຜ່ານ", "ពាក្យសម្ងាត់", "စကားဝှက်", "የይለፍ ቃል", "پاس ورڈ",
)  # fmt: skip
"""Literals in lower case; every name of a credential contains at least one of them."""


@dataclass(frozen=True, slots=True)
class Name:
    """A name found in a text, and the kind of value that it announces."""

    start: int
    end: int
    kind: ValueKind
    text: str


_PASSWORDS = frozenset(
    """password passwords passwort passwd passwrd passphrase passcode pass pwd pw kennwort kennworte
    passe contraseña contrasena contraseñas senha senhas wachtwoord parola clave lösenord losenord hasło
    haslo heslo salasana şifre пароль 密码 密碼 パスワード 비밀번호 passe pswd psw userpass dbpass
    dbpassword dbpwd userpassword rootpassword adminpassword pgpassword mysqlpwd requirepass masterauth
    bindpw rootpw adminpw sudopass mdp парола adgangskode kodeord passord jelszó κωδικός lozinka psk
    סיסמה पासवर्ड 암호 패스워드 비번 parolă contrasenya losungswort passwörter presharedkey
    口令 parolachiave wpapsk passordet passordene adgangskoden adgangskoder kodeordet lösenordet losenordet
    salasanani salasanasi salasanamme jelszava jelszavam jelszavad şifresi şifreniz şifrem parolası parolanız
    parolam hasła hasłem hesla heslem пароля паролем паролю пароли паролата zaporka zaporku geslo gesla
    lozinke lozinku parool parooli salasõna slaptažodis slaptažodį lykilorð lykilorðið aðgangsorð pasahitza
    contrasinal fjalëkalim fjalëkalimi wagwoord nenosiri şifrə şifrəsi лозинка лозинку գաղտնաբառ գաղտնաբառը
    პაროლი পাসওয়ার্ড கடவுச்சொல் పాస్‌వర్డ్ પાસવર્ડ പാസ്‌വേഡ് ಪಾಸ್‌ವರ್ಡ್ ਪਾਸਵਰਡ මුරපදය ລະຫັດຜ່ານ ពាក្យសម្ងាត់
    စကားဝှက်""".split()  # noqa: SIM905 - a list of words reads better as words
) | frozenset(
    {
        *("kata sandi", "kata laluan", "mật khẩu", "нууц үг", "құпия сөз", "كلمة المرور"),
        *("كلمة السر", "رمز عبور", "گذرواژه", "پاس ورڈ", "รหัสผ่าน", "የይለፍ ቃል"),
    }
)
_KEYS = frozenset(
    """token tokens secret secrets apikey apikeys accesskey secretkey privatekey clientsecret appsecret
    authtoken accesstoken refreshtoken bearertoken sessiontoken credential credentials authkey
    accountkey sharedaccesskey encryptionkey masterkey signingkey appkey geheimnis jeton
    zugangsschlüssel apischlüssel schlüssel secretaccesskey webhooksecret токен 密钥 令牌 秘密鍵 토큰
    sharedsecret consumersecret""".split()  # noqa: SIM905 - as above
)
_KEY_QUALIFIERS = frozenset(
    """api access secret private encryption encrypt signing sign account shared auth authentication
    master service storage app application client webhook subscription deploy deployment license
    session admin integration write routing ingest function signature hmac jwt cookie consumer bot
    bearer preshared decryption cipher crypto vault activation recovery backup user rest project
    server team org organization personal root api_secret stripe openai anthropic datadog github
    gitlab slack twilio sendgrid mailgun heroku cloudflare algolia azure gcp google aws firebase
    pagerduty fastly snyk sentry newrelic unseal seal fernet aes aes256 crypt product current""".split()  # noqa: SIM905 - as above
)
_SESSIONS = frozenset({"sessionid", "jsessionid", "phpsessid", "csrftoken", "sid"})
_ADJECTIVES = frozenset(
    """temporal temporaire temporanea provisoire provvisoria provisional inicial initiale iniziale initial
    secreta secreto secrète segreta segreto secreta wifi wlan api actual actuelle attuale nueva nuevo
    nouveau nouvelle nuova nova atual vorläufig temporär wlan-gast πρόσβασης""".split()  # noqa: SIM905
)
_KEY_NOUNS = frozenset(
    """clé chiave chave sleutel klucz ключ clave schlüssel wlanschlüssel netzwerkschlüssel""".split()  # noqa: SIM905
)
_SECRET_WORDS = frozenset(
    """api secreta secreto secrète segreta segreto secreto tajny prywatny секретный geheime privada privato
    privée acesso accesso accès""".split()  # noqa: SIM905
)
_PAIRS = frozenset(
    """zugang zugangsdaten creds credentials identifiants login logins anmeldung acceso
    credenciales""".split()  # noqa: SIM905
)
_PASSWORD_ENDS = tuple(
    """パスワード パスワードは 密码 密碼 口令 비밀번호 비밀번호는 password passwd passwort kennwort passphrase storepass
    keypass""".split()  # noqa: SIM905
)
_KEY_ENDS = tuple(
    """キー トークン 秘密鍵 密钥 令牌 토큰 token secret apikey accesskey secretkey""".split()  # noqa: SIM905
)
_IGNORED_ENDINGS = frozenset(
    """prod production dev development test testing staging stage live default value text plain old
    new root admin user db database base base64 b64 primary secondary temp temporary current raw env
    main backup local remote here now es is readonly ro rw write read master slave replica app web
    api smtp imap ftp ssh mysql postgres pg redis mongo ldap wifi wlan vpn s v confirmation
    confirm again repeat""".split()  # noqa: SIM905
)
_UNBOUNDED = "\u0590"
"""The first character of scripts in which a name needs no boundary, because they attach articles
(Hebrew, Arabic), have vowel signs that Python does not treat as letters (Hindi), or have no spaces
between words."""
_PASS_QUALIFIERS = frozenset(
    {"proxy", "first", "second", "two", "single", "one", "multi", "render", "ask"}
)
_IDENTIFIER = re.compile(r"[\w.$-]*")
_REACH_BEFORE = 64
_WORDS = re.compile(r"[A-Z]+(?![^\W\d_A-Z])|[A-Z]?[^\W\d_A-Z]+|\d+")
_ADJECTIVE = re.compile(r"[ \t](?:d['’]|de[ \t])?([^\W\d_]{3,16}|\d{1,2})(?=[ \t]{0,2}[:=：])")
_WORD_BEFORE = re.compile(r"([A-Za-z]{2,16})[ \t]\Z")
_MOT_DE_PASSE = re.compile(r"mots? de \Z", re.IGNORECASE)
_PIN = re.compile(r"(?:PIN|Pin|pin|PUK|ПИН|暗証番号)(?:[ -]?(?:code|Code|CODE))?\Z")


def find_names(text: str, anchors: Sequence[Anchor]) -> Iterator[Name]:
    """Find the names of credentials in a text, in order and without overlaps."""
    done = 0
    for anchor in anchors:
        if anchor.start < done:
            continue
        if text[anchor.start] >= _UNBOUNDED:
            done = anchor.end
            kind = _find_kind_of_word(text[anchor.start : anchor.end].lower())
            if kind is not None:
                yield Name(anchor.start, anchor.end, kind, text[anchor.start : anchor.end])
            continue
        start = _find_name_start(text, anchor.start)
        match = _IDENTIFIER.match(text, anchor.start, anchor.end + _REACH_BEFORE)
        # Some names are two words, and some anchors end with the separator after the name.
        anchor_end = anchor.start + len(text[anchor.start : anchor.end].rstrip(' :="'))
        end = max(match.end() if match else 0, anchor_end)
        while end > anchor_end and text[end - 1] in ".-_$":
            end -= 1
        done = end
        kind, start = _find_kind(text, start, end)
        if kind is not None:
            after = _ADJECTIVE.match(text, end)
            if after is not None and (after[1].isdigit() or after[1].lower() in _ADJECTIVES):
                end = done = after.end()
            yield Name(start, end, kind, text[start:end])


def find_value_kind(name: str) -> ValueKind | None:
    """Return the kind of value that a name, such as a column's, announces; None for other names."""
    bare = name.strip(" \t*_`\"':")
    bare = re.sub(r"\s*\([^()]*\)$", "", bare)
    return _find_kind(bare, 0, len(bare))[0] if len(bare) <= _REACH_BEFORE else None


def _find_name_start(text: str, at: int) -> int:
    low = max(0, at - _REACH_BEFORE)
    while at > low and (text[at - 1].isalnum() or text[at - 1] in "_.-$"):
        at -= 1
    return at


def _find_kind(text: str, start: int, end: int) -> tuple[ValueKind | None, int]:
    """Return the kind of value of a name, and the name's start, which may be one word earlier."""
    words = [word.lower() for word in _WORDS.findall(text[start:end])]
    while len(words) > 1 and (words[-1].isdigit() or words[-1] in _IGNORED_ENDINGS):
        words.pop()
    if (
        not words
        or _is_other_term(text[start:end], words)
        or _has_other_meaning(text, start, words)
    ):
        return None, start
    if words[-1] in {"key", "keys"}:
        if _is_wifi_key(text, start, end):
            return ValueKind.PASSWORD, start
        return _find_kind_of_key(text, start, words)
    if words[-1] in _KEY_NOUNS and (words[-1] != "clave" or _KEY_AFTER.match(text, end)):
        return _find_kind_of_noun(text, start, end), start
    return _find_kind_of_words(text[start:end], words), start


def _is_other_term(name: str, words: list[str]) -> bool:
    """Return whether a name only resembles a password's name: 1Password, a first pass, PASS."""
    if words[:2] == ["1", "password"]:
        return True
    verdict = name.isupper() and len(words) == 1
    return words[-1] == "pass" and (verdict or words[0] in _PASS_QUALIFIERS)


_MEANING_CHANGING_WORDS = {
    "token": re.compile(r"(?i:page|next|continuation|pagination)[ \t]\Z"),
    "tokens": re.compile(r"(?i:page|next|continuation|pagination)[ \t]\Z"),
    "pin": re.compile(r"(?i:gpio|bcm|header|board|digital|analog|led|connector)[ \t]\Z"),
}
"""Words before a name that change its meaning, as in a page token, or a pin of a board."""


def _has_other_meaning(text: str, start: int, words: list[str]) -> bool:
    """Return whether the word before a name, or its absence, shows that no credential is meant."""
    low = max(0, start - _REACH_BEFORE)
    if words[-1] == "passe" and words[-2:-1] != ["palavra"]:
        return _MOT_DE_PASSE.search(text, low, start) is None
    if len(words) > 1:
        return words[-1] in {"token", "tokens"} and words[-2] in _OTHER_TOKENS
    before = _MEANING_CHANGING_WORDS.get(words[-1])
    return before is not None and before.search(text, low, start) is not None


def _find_kind_of_words(name: str, words: list[str]) -> ValueKind | None:
    if name.lower() in _PASSWORDS:  # also of several words, or with vowel signs
        return ValueKind.PASSWORD
    if _PIN.search(name):
        return ValueKind.PIN
    if name in {"_auth", ":_auth"} or words[-2:] == ["secret", "id"]:
        return ValueKind.KEY
    if words[-1] in _SESSIONS or words[-1] == "auth" or words[-2:] == ["session", "id"]:
        return ValueKind.RANDOM
    if words[-1] == "pat":
        return ValueKind.KEY if name.rstrip("0123456789_").endswith("PAT") else ValueKind.RANDOM
    return _find_kind_of_word(words[-1])


_OTHER_TOKENS = frozenset(
    """page next continuation pagination cursor sync start eos bos pad stop lock change
    idempotency""".split()  # noqa: SIM905 - a list of words reads better as words
)
"""Words before `token` that never name a credential."""


def _find_kind_of_noun(text: str, start: int, end: int) -> ValueKind | None:
    """Return the kind of value of a noun such as key, by the words around it."""
    beside = {
        word.lower() for word in re.findall(r"[^\W\d_]+", text[max(0, start - 16) : end + 16])
    }
    if beside & {"wifi", "wlan"} or _is_wifi_key(text, start, end):
        return ValueKind.PASSWORD
    return ValueKind.KEY if beside & _SECRET_WORDS else None


_WIFI = re.compile(r"\bwi-?fi\b|\bwlan\b|\bwpa[23]?\b|\bssid\b|netzwerkschlüssel")
_WIFI_PARTS = ("wi-fi", "wifi", "wlan", "wpa", "ssid", "netzwerk")


def _is_wifi_key(text: str, start: int, end: int) -> bool:
    """Return whether a key belongs to a wireless network: `WLAN key`, `WiFi: Depot, key`."""
    low = max(0, start - _REACH_BEFORE)
    begin = max(text.rfind("\n", low, start) + 1, low)
    beside = text[begin:end].lower()
    return any(part in beside for part in _WIFI_PARTS) and _WIFI.search(beside) is not None


_KEY_AFTER = re.compile(r"[ \t](?:de[ \t])?(?i:api|secreta|privada)\b")


def _find_kind_of_word(word: str) -> ValueKind | None:
    if word in _PASSWORDS or word.endswith(_PASSWORD_ENDS):
        return ValueKind.PASSWORD
    if word in _PAIRS:
        return ValueKind.PAIR
    if word in _KEYS or word.endswith(_KEY_ENDS):
        return ValueKind.KEY
    return None


_GENERIC_BEFORE = frozenset(
    """public primary foreign cache partition sort hash object row idempotency trace event issue project
    translation integrity lookup index s3 dict json map unique composite natural surrogate search
    group message routing config registry fingerprint""".split()  # noqa: SIM905
)


def _find_kind_of_key(text: str, start: int, words: list[str]) -> tuple[ValueKind | None, int]:
    """Return the kind of value of a key (None for a primary key), and the start of its name."""
    if len(words) > 1:
        kind = ValueKind.KEY if words[-2] in _KEY_QUALIFIERS else ValueKind.RANDOM
        return (None if words[-2] in _GENERIC_BEFORE else kind), start
    before = _WORD_BEFORE.search(text, max(0, start - 20), start)
    if before is None:
        return ValueKind.RANDOM, start
    if before[1].lower() in _KEY_QUALIFIERS:
        return ValueKind.KEY, before.start(1)
    return (None if before[1].lower() in _GENERIC_BEFORE else ValueKind.RANDOM), start
