"""Placeholders for credentials, as used in documentation, and words of sentences about them."""

from __future__ import annotations

import base64
import re
from itertools import pairwise

WORDS = frozenset(
    """
    password passwort kennwort passwd passphrase passcode pass pwd pw secret secrets token apikey
    api_key api-key key keys string str text texto none null nil undefined void true false yes no on
    off user username benutzer benutzername usuario admin administrator root guest test testing
    tests tester testpass testpassword example examples beispiel ejemplo exemple sample demo dummy
    fake foo bar baz foobar postgres postgresql mysql mariadb mongodb redis oracle sqlite default
    changeme change_me change-me changeit changethis change_this letmein redacted masked hidden
    removed omitted placeholder todo tbd fixme mysecretpassword mypassword my_password my-password
    mysecret mytoken supersecret secretpassword secret_password topsecret yourpassword required
    optional obligatoire obligatorio erforderlich pflichtfeld facultatif opcional optionnel mandatory
    recommended deprecated unused missing empty blank unset set available unavailable supported
    unsupported enabled disabled enable disable valid invalid incorrect correct wrong falsch unknown
    expired abgelaufen active inactive locked protected encrypted verschluesselt verschlüsselt hashed
    hash plain plaintext cleartext base64 bcrypt scrypt argon2 pbkdf2 sha256 sha512 md5 hmac jwt oauth
    oauth2 openid saml ldap kerberos basic bearer digest sensitive confidential private public
    internal external manual automatic auto automatically random generated number integer int float
    boolean bool bytes char varchar object array list map dict any optional[str] secretstr
    environment env variable file files path vault keychain keyring config configuration stdin prompt
    ask input value values field same see siehe voir above below here there this that it them not must
    should may can cannot will would shall has have is are was were be been to for from of in on at by
    with without and or if when unless only also new old current strong weak long short case-sensitive
    case-insensitive secure insecure unique rotated stored sent created changed reset used needed
    provided given entered passed issued returned checked verified validated refresh access session
    requires needs expects takes specifies option options flag flags argument parameter
    authentication authorization community always never
    """.split()  # noqa: SIM905 - a list of words reads better as words
)
"""Placeholders in documentation, and words that follow the name of a credential."""

DOCUMENTED = frozenset(
    value.lower()
    for value in (
        # Examples from RFC 6749, 6750, 7617, 7636 and OpenID Connect Core.
        "2YotnFZFEjr1zCsicMWpAA",
        "tGzv3JOkF0XG5Qx2TlKWIA",
        "7Fjfp0ZBr1KtDRbnfVdmIw",
        "gX1fBat3bV",
        "A3ddj3w",
        "czZCaGRSa3F0MzpnWDFmQmF0M2JW",
        "czZCaGRSa3F0MzpnWDFmQmF0M2JW",
        "mF_9.B5f-4.1JqM",
        "SlAV32hkKG",
        "SplxlOBeZQQYbYS6WxSbIA",
        "8xLOxBtZp8",
        "QWxhZGRpbjpvcGVuIHNlc2FtZQ",
        "QWxhZGRpbjpPcGVuU2VzYW1l",
        "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk",
        # Signatures and claims from jwt.io.
        "SflKxwRJSMeKKF2QT4fwpMeJf36POk6yJV_adQssw5c",
        "TJVA95OrM7E2cBab30RMHrHDcEfxjoYZgeFONFh7HgQ",
        "eyJzdWIiOiIxMjM0NTY3ODkwIiwibmFtZSI6IkpvaG4gRG9lIiwiaWF0IjoxNTE2MjM5MDIyfQ",
        "eyJzdWIiOiIxMjM0NTY3ODkwIiwibmFtZSI6IkpvaG4gRG9lIiwiYWRtaW4iOnRydWV9",
        "eyJzdWIiOiIxMjM0NTY3ODkwIiwibmFtZSI6IkpvaG4gRG9lIiwiYWRtaW4iOnRydWUsImlhdCI6MTUxNjIzOTAyMn0",
        # Stripe's shared test keys, Azurite's account, Telegram's example.
        "4eC39HqLyjWDarjtT1zdp7dc",
        "BQokikJOvBiI2HlWgH4olfQ2",
        "TYooMQauvdEDq54NiTphI7jx",
        "sk_test_4eC39HqLyjWDarjtT1zdp7dc",
        "sk_test_BQokikJOvBiI2HlWgH4olfQ2",
        "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw",
        "123456:ABC-DEF1234ghIkl-zyx57W2v1u123ew11",
        # Hashes from tutorials on bcrypt.
        "$2a$10$N9qo8uLOickgx2ZMRZoMyeIjZAgcfl7p92ldGxad68LJZdL17lhWy",
        "$2a$12$R9h/cIPz0gi.URNNX3kh2OPST9/PgBkqquzi.Ss7KIUgO2t0jWMUW",
        "$2a$10$vI8aWBnW3fID.ZQ4/zo1G.q1lRps.9cGLcZEiGDMVr5yUP1KUOYTa",
    )
)
"""Examples that specifications and vendors publish: in lower case, without padding."""

_FILLERS = frozenset("my some super very insecure the a an db app this is".split())  # noqa: SIM905
_FUNCTION_WORDS = frozenset(
    """a an the to of for in on at is are be must your this that and or with from by as it not you we
    if can will should has have use used using no any all see at least than more enter please do
    der die das und oder mit für ist el la los un una de y o con para le les des et ou pour avec est
    """.split()  # noqa: SIM905 - as above
)

_INFLECTED = re.compile(r"(?:ed|ing|tion|ions|ers|ments?|ly)$")
_PREDICATE = re.compile(
    r"(?:ed|ing|able|ible|ous|ful|less|ive|ly|ant|ent|al|ory|ary|en|ic|[^aeiou]y|lich|ig|bar|isch|los|sam"
    r"|haft|ert|[^aeiou]t|ado|ada|ido|ida|orio|oria|oire|e[ct]t?[oae]|é|ée|és|ís?|ise?|ire|ide|uste?|eur"
    r"|eux|euse|nte|ura|uro|ato|ata|ito|ita|uto|uta|cia|cio|aire|arie?|tre|ous|ough|ime|own|ost|ong|ort"
    r"|ique|aux|elle|elles?|imo|ima|ano|ana)$"
)
_SHORT_WORD_LENGTH = 6


def is_made_of_words(value: str) -> bool:
    """Return whether a value consists of words of WORDS: `my-secret-token`, `changeme`."""
    parts = [part for part in re.split(r"[-_ /:]+", value.lower()) if part]
    if len(parts) < 2:  # noqa: PLR2004 - a single word
        return value.lower() in WORDS
    return all(part in WORDS or part in _FILLERS for part in parts)


def is_sentence_word(word: str) -> bool:
    """Return whether a word belongs to a sentence: an article, a participle, or one of WORDS."""
    return word in _FUNCTION_WORDS or word in WORDS or _INFLECTED.search(word) is not None


def is_predicate(word: str) -> bool:
    """Return whether a word continues `The password is` as an adjective or a participle does.

    A noun without an article cannot follow there; such a word is the password itself.
    """
    return (
        len(word) < _SHORT_WORD_LENGTH
        or word.lower() in WORDS
        or _PREDICATE.search(word) is not None
    )


_FEW_DISTINCT_CHARACTERS = 3
_MIN_DISTINCT_CHARACTERS = 6
_PARTS = (
    "...", "…", "xxxx", "****", "••••", "your-", "your_", "your ", "example.com", "placeholder",
    "insert-", "insert_", "environ", "getenv", "process.env", "change-me", "change_me", "changeme",
    "redacted]", "<redacted", "secrets.", "os.env",
)  # fmt: skip
_ENDS = ("_here", "-here", "here>", "_redacted", "-redacted", "_dummy", "-dummy")
_STARTS = ("urn:", "#/", "$$", "enc[", "dummy_", "dummy-", "arn:", "base64://", "vault:")
_NAMES = re.compile(
    r"(?:[a-z]+[-_.])+(?:\d{1,2}[-_])?(?:password|passwd|pass|pwd|secret|token|key|jwt)\d?|your[a-z]+"
)
_CAPITALS = frozenset("PASSWORD PASSWD PASS PWD SECRET TOKEN KEY APIKEY JWT".split())  # noqa: SIM905
_TOKEN_PARTS = (
    "xxxx", "your", "example", "placeholder", "redacted", "_here", "-here", "tokenhere", "keyhere", "...",
    "replace", "dummy", "goes-here", "insert-", "insert_", "***", "•••", "verylong", "abc123", "fake-", "fake_",
)  # fmt: skip
_MIN_REPEATED_CHARACTERS = 6
"""A generated value never contains this many equal characters in a row."""
_SEQUENCES = (
    "abcdefghijklmnopqrstuvwxyz",
    "01234567890",
    "zyxwvutsrqponmlkjihgfedcba",
    "9876543210",
)
_FOLLOWING = frozenset(pair for text in _SEQUENCES for pair in pairwise(text))
_MIN_SEQUENCE_LENGTH = 4
_MIN_SEQUENCE_SHARE = 0.7
_PERIOD, _LEAST_PERIODIC = 8, 16
_SEPARATORS = re.compile(r"[^A-Za-z0-9]+")
_BASE64 = re.compile(r"[A-Za-z0-9+/]{8,64}={0,2}")
_BRACKETED = re.compile(
    r"<[^<>]*>|\[[\w .:-]*\]|\{\{?[^{}]*\}\}?|\(\(?[\w .:-]*\)\)?|%[A-Za-z_]\w*%|%\(\w+\)s|%[sdvq](?:\\[rn])*|%{1,2}[\w().:]+%{1,2}|\$\w+\$|\{\w+\}[a-z]+"
    r"|__?[A-Z][A-Z_]+__?|@@?\w+@@?"
)
_VARIABLE = re.compile(
    r"%%[A-Z]|[$#%!]\{|\{\{|\{%|<%|\$\(|\$(?:[A-Z_][A-Z0-9_]*|[a-z_][A-Za-z_]*\d{0,2})(?:$|[-/@,;)>\[.:])|\$\d$|&lt;|#\{"
)
_MENTIONED = re.compile(r"<[A-Za-z][\w .:|-]*>|\$\{\w|\{\{|#\{\w")
_ESCAPED_LETTERS = re.compile(r"(?:\\u[0-9a-fA-F]{4}){2,}")
_EXPRESSION = re.compile(r"\^.*\$|.*\[(?:0-9|a-z|A-Z|\^).*\].*|[A-Za-z]+\[[\w., \[\]]+\]")


def is_placeholder(value: str) -> bool:
    """Return whether a value is a placeholder: `$VAR`, `<your-password>`, `changeme`, `****`."""
    bare = value.strip("\"'`“”‘’«» \t")
    lowered = bare.strip("()[]{}.,;:!?*_").lower()
    if not lowered:
        return len(set(bare)) <= _FEW_DISTINCT_CHARACTERS
    if bare.endswith(("...", "…")) or bare.lower().startswith(_STARTS):
        return True
    return _is_reference(bare) or _is_description(lowered) or is_encoded_placeholder(bare)


def _is_reference(bare: str) -> bool:
    """Return whether a value refers to a different value: a variable, a template, a name in brackets."""
    if _VARIABLE.match(bare) or _MENTIONED.search(bare) or _ESCAPED_LETTERS.search(bare):
        return True
    if any(form.fullmatch(bare) for form in (_BRACKETED, _EXPRESSION, _NAMES)):
        return True
    parts = bare.split("_")
    return len(parts) > 1 and bare.isupper() and bare.isascii() and not _CAPITALS.isdisjoint(parts)


def _is_description(lowered: str) -> bool:
    """Return whether a value describes what to fill in, or is an example, or repetitive."""
    if (
        len(set(lowered)) < _FEW_DISTINCT_CHARACTERS
        or is_made_of_words(lowered)
        or lowered.endswith(_ENDS)
    ):
        return True
    if (
        "example" in lowered
        or is_published_example(lowered)
        or (len(lowered) >= _LEAST_PERIODIC and has_placeholder_shape(lowered))
    ):
        return True
    if "." in lowered and all(len(set(part)) == 1 for part in lowered.split(".")):
        return True
    if "|" in lowered and lowered.partition("|")[0] in WORDS:
        return True
    return any(part in lowered for part in _PARTS)


def is_token_placeholder(body: str) -> bool:
    """Return whether the part of a token after its prefix is a placeholder: `ghp_xxxxxxxx`."""
    lowered = body.lower()
    if len(set(lowered)) < _MIN_DISTINCT_CHARACTERS or any(
        part in lowered for part in _TOKEN_PARTS
    ):
        return True
    return has_placeholder_shape(lowered)


def has_placeholder_shape(lowered: str) -> bool:
    """Return whether a lower-case value is repetitive, sequential or a published example."""
    if is_published_example(lowered):
        return True
    plain = _SEPARATORS.sub("", lowered)
    return _is_repetitive(plain) or _is_sequential(plain)


def is_published_example(lowered: str) -> bool:
    """Return whether a lower-case value, or a part of it, is a published example."""
    parts = (lowered.rstrip("="), lowered.rpartition("_")[2], *lowered.split("."))
    return any(part in DOCUMENTED for part in parts)


def is_encoded_placeholder(value: str) -> bool:
    """Return whether base64 encodes a placeholder, perhaps with a user: `dXNlcjpwYXNzd29yZA==`."""
    if not _BASE64.fullmatch(value):
        return False
    try:
        text = base64.b64decode(value + "=" * (-len(value) % 4)).decode("ascii")
    except ValueError:
        return False
    password = text.strip().rpartition(":")[2].lower()
    return password.isprintable() and bool(password) and _is_description(password)


def _is_repetitive(plain: str) -> bool:
    """Return whether a character occurs many times in a row, or the text repeats its start."""
    run = 1
    for before, after in pairwise(plain):
        run = run + 1 if before == after else 1
        if run >= _MIN_REPEATED_CHARACTERS:
            return True
    if len(plain) < _LEAST_PERIODIC:
        return False
    return any(
        plain[period:] == plain[:-period] for period in range(1, min(_PERIOD, len(plain) // 2) + 1)
    )


def _is_sequential(plain: str) -> bool:
    """Return whether most of a text follows an alphabet: `1234567890abcdef`."""
    covered, run = 0, 1
    for pair in [*pairwise(plain), ("", "")]:
        if pair in _FOLLOWING:
            run += 1
            continue
        covered += run if run >= _MIN_SEQUENCE_LENGTH else 0
        run = 1
    return covered >= max(_MIN_SEQUENCE_LENGTH + 1, _MIN_SEQUENCE_SHARE * len(plain))
