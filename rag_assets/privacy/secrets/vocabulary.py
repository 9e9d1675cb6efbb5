"""Vocabulary: words that are placeholders for credentials, and words of sentences about them."""

from __future__ import annotations

import re

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
_SHORT = 6


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
    """Return whether a single word can follow `The password is`: an adjective, a participle.

    A noun without an article cannot follow in the languages covered here, so it is the password
    itself.
    """
    return len(word) < _SHORT or word.lower() in WORDS or _PREDICATE.search(word) is not None
