import base64
import hashlib
import hmac
import json
import os
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from rag_assets.api.identity import Unauthenticated
from rag_assets.api.jwt_tokens import JwtVerifier, KeySet, build_key_finder
from rag_assets.api.settings import JwtSettings, ServiceSettings
from rag_assets.common.errors import ConfigurationError, ServiceUnavailable

SECRET = "an example secret of more than 32 bytes"
ISSUER, AUDIENCE = "https://sign.example", "rag"
HMAC = JwtSettings(secret=SECRET, issuer=ISSUER, audience=AUDIENCE, leeway=30)


def claims(**changes: Any) -> dict[str, Any]:
    """Return valid claims with changes; None removes a claim."""
    now = int(time.time())
    good = {"sub": "ada", "iss": ISSUER, "aud": AUDIENCE, "iat": now, "exp": now + 60}
    good |= {"tenants": ["acme"], "groups": ["board"]}
    return {name: value for name, value in (good | changes).items() if value is not None}


def verifier(settings: JwtSettings = HMAC) -> JwtVerifier:
    return JwtVerifier(settings, build_key_finder(settings))


def part(value: bytes) -> str:
    return base64.urlsafe_b64encode(value).rstrip(b"=").decode()


def unsigned(algorithm: str = "none") -> str:
    """Return a token without a signature, made by hand because libraries may refuse to."""
    head = json.dumps({"alg": algorithm, "typ": "JWT"}).encode()
    return f"{part(head)}.{part(json.dumps(claims()).encode())}."


def confused(public: bytes) -> str:
    """Return a token signed with a public key's text as the secret of an HMAC."""
    token = unsigned("HS256")
    return token + part(hmac.new(public, token[:-1].encode(), hashlib.sha256).digest())


@pytest.fixture(scope="module")
def rsa_key() -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(65_537, 2_048)


def pem(key: rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey) -> bytes:
    return key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)


def test_subject_and_groups_are_the_principals() -> None:
    identity = verifier().verify(jwt.encode(claims(role="admin"), SECRET))
    assert identity.tenants == {"acme"}
    assert identity.principals == ("ada", "group:board")
    assert identity.role == "admin"


@pytest.mark.parametrize(
    ("role", "also"),
    [("admin", "members"), ("member", "members"), ("orchestrator", "members"), ("guest", "guests")],
)
def test_the_role_adds_a_principal(role: str, also: str) -> None:
    # A group may be called so: it asks as group:members.
    token = jwt.encode(claims(role=role, groups=["members", "guests"]), SECRET)
    caller = verifier().verify(token).caller
    assert caller.principals == ("ada", "group:members", "group:guests", also)
    assert caller.model_copy().principals == caller.principals


@pytest.mark.parametrize(
    ("claim", "organization"),
    [("acme", "acme"), (None, None), ("", None), (["acme"], None), ({"id": 1}, None), (7, None)],
)
def test_an_organization_that_is_no_name_is_none(claim: object, organization: str | None) -> None:
    identity = verifier().verify(jwt.encode(claims(organization=claim), SECRET))
    assert (identity.organization, identity.tenants) == (organization, {"acme"})
    named = JwtSettings(secret=SECRET, audience=AUDIENCE, organization_claim="org")
    assert verifier(named).verify(jwt.encode(claims(org="x"), SECRET)).organization == "x"


def test_names_of_claims_are_configured() -> None:
    settings = JwtSettings(secret=SECRET, tenants_claim="org", groups_claim="teams")
    given = {"sub": "ada", "exp": time.time() + 60, "org": "acme", "teams": "board"}
    identity = verifier(settings).verify(jwt.encode(given, SECRET))
    assert (identity.tenants, identity.principals) == ({"acme"}, ("ada", "group:board"))


BAD = {
    "expired": claims(exp=int(time.time()) - 3_600),
    "not yet valid": claims(nbf=int(time.time()) + 3_600),
    "made in the future": claims(iat=int(time.time()) + 3_600),
    "never ends": claims(exp=None),
    "other issuer": claims(iss="https://evil.example"),
    "no issuer": claims(iss=None),
    "other audience": claims(aud="payroll"),
    "no audience": claims(aud=None),
    "no subject": claims(sub=None),
    "empty subject": claims(sub=""),
    "subject is a number": claims(sub=7),
    "subject would be a group": claims(sub="group:board"),
    "subject would be all members": claims(sub="members"),
    "subject would be all guests": claims(sub="guests", role="guest"),
    "control character": claims(sub="ada\x00"),
    "half a surrogate pair": claims(groups=["\ud800"]),
    "groups are an object": claims(groups={"board": True}),
    "too many groups": claims(groups=["g"] * 1_000),
    "role of somebody else's": claims(role="superuser"),
    "role is a list": claims(role=["admin"]),
}


@pytest.mark.parametrize("bad", BAD.values(), ids=BAD.keys())
def test_claims_that_do_not_count(bad: dict[str, Any]) -> None:
    with pytest.raises(Unauthenticated) as caught:
        verifier().verify(jwt.encode(bad, SECRET))
    assert "ada" not in caught.value.advice


@pytest.mark.parametrize(
    "token",
    [
        unsigned(),
        jwt.encode(claims(), "another secret of more than 32 bytes"),
        jwt.encode(claims(), SECRET * 2, algorithm="HS512"),
        jwt.encode(claims(), SECRET)[:-6] + "AAAAAA",
        "a.b.c",
        "\u00e4.\u00f6.\u00fc",
        "x" * 20_000,
    ],
    ids=["none", "other secret", "other hash", "altered", "noise", "no ASCII", "huge"],
)
def test_signatures_that_do_not_count(token: str) -> None:
    with pytest.raises(Unauthenticated):
        verifier().verify(token)


def test_a_public_key_is_no_secret(rsa_key: rsa.RSAPrivateKey, tmp_path: Path) -> None:
    file = tmp_path / "key.pem"
    file.write_bytes(pem(rsa_key))
    settings = JwtSettings(public_key=file, issuer=ISSUER, audience=AUDIENCE)
    good = jwt.encode(claims(), rsa_key, algorithm="RS256")
    assert verifier(settings).verify(good).principals[0] == "ada"
    for token in (confused(pem(rsa_key)), unsigned(), jwt.encode(claims(), SECRET)):
        with pytest.raises(Unauthenticated):
            verifier(settings).verify(token)


def test_a_key_set_is_read_without_its_secrets(rsa_key: rsa.RSAPrivateKey, tmp_path: Path) -> None:
    curve = ec.generate_private_key(ec.SECP256R1())
    keys = [
        {**jwt.algorithms.RSAAlgorithm.to_jwk(rsa_key.public_key(), as_dict=True), "kid": "r"},
        {**jwt.algorithms.ECAlgorithm.to_jwk(curve.public_key(), as_dict=True), "kid": "e"},
        {"kty": "oct", "k": part(SECRET.encode()), "kid": "o", "alg": "HS256"},
    ]
    file = tmp_path / "jwks.json"
    file.write_text(json.dumps({"keys": keys}))
    check = verifier(JwtSettings(jwks=str(file), issuer=ISSUER, audience=AUDIENCE))

    def token(key: Any, algorithm: str, **header: str) -> str:
        return jwt.encode(claims(), key, algorithm=algorithm, headers=header)

    assert check.verify(token(rsa_key, "RS256", kid="r")).tenants == {"acme"}
    assert check.verify(token(curve, "ES256", kid="e")).tenants == {"acme"}
    for bad in (
        token(SECRET, "HS256", kid="o"),
        token(rsa_key, "RS256", kid="e"),
        token(rsa_key, "RS256", kid="unknown"),
        token(rsa_key, "RS256"),
        token(rsa_key, "PS256", kid="r"),
    ):
        with pytest.raises(Unauthenticated):
            check.verify(bad)


class Clock:
    """A clock that the test sets."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def key_file(rsa_key: rsa.RSAPrivateKey, tmp_path: Path) -> Path:
    as_dict = jwt.algorithms.RSAAlgorithm.to_jwk(rsa_key.public_key(), as_dict=True)
    file = tmp_path / "jwks.json"
    file.write_text(json.dumps({"keys": [{**as_dict, "kid": "r"}]}))
    return file


def test_keys_outlive_their_source_for_an_hour(key_file: Path) -> None:
    clock = Clock()
    keys = KeySet(str(key_file), clock)
    known = keys.find_key({"kid": "r"})
    key_file.unlink()
    for clock.now in (301.0, 302.0, 3_600.0):
        assert keys.find_key({"kid": "r"}) is known
    with pytest.raises(ServiceUnavailable):
        keys.find_key({"kid": "perhaps new"})
    clock.now = 3_601.0
    with pytest.raises(ServiceUnavailable):
        keys.find_key({"kid": "r"})


def test_unknown_key_ids_cause_one_fetch_in_ten_seconds_at_most(key_file: Path) -> None:
    clock = Clock()
    keys = KeySet(str(key_file), clock)
    known = keys.find_key({"kid": "r"})
    key_file.write_text(key_file.read_text().replace('"kid": "r"', '"kid": "s"'))
    clock.now = 9.0
    with pytest.raises(ValueError, match="no key has the id"):
        keys.find_key({"kid": "s"})
    assert keys.find_key({"kid": "r"}) is known
    clock.now = 11.0
    assert keys.find_key({"kid": "s"}).algorithm == "RS256"
    with pytest.raises(ValueError, match="no key has the id"):
        keys.find_key({"kid": "r"})


def test_one_fetches_and_those_whose_key_is_known_go_on(key_file: Path) -> None:
    clock = Clock()
    keys = KeySet(str(key_file), clock)
    known = keys.find_key({"kid": "r"})
    text = key_file.read_text()
    key_file.unlink()
    # Opening it waits for the other side.
    os.mkfifo(key_file)
    clock.now = 301.0
    with ThreadPoolExecutor(1) as pool:
        fetching = pool.submit(keys.find_key, {"kid": "r"})
        with key_file.open("w") as source:
            assert keys.find_key({"kid": "r"}) is known
            with pytest.raises(ServiceUnavailable):
                keys.find_key({"kid": "perhaps new"})
            source.write(text)
        assert fetching.result().algorithm == "RS256"
    assert keys.find_key({"kid": "r"}) is not known


def test_a_key_set_that_cannot_be_read_is_no_refusal(tmp_path: Path) -> None:
    missing = str(tmp_path / "none.json")
    check = verifier(JwtSettings(jwks=missing, issuer=ISSUER, audience=AUDIENCE))
    with pytest.raises(ServiceUnavailable):
        check.verify(jwt.encode(claims(), SECRET, headers={"kid": "r"}))


@pytest.mark.parametrize(
    ("environment", "said"),
    [
        ({"SECRET": "short"}, "shorter than 32 bytes"),
        ({"SECRET": SECRET, "JWKS": "keys.json"}, "only one key can verify"),
        ({"JWKS": "keys.json"}, "without RAG_ASSETS_JWT_ISSUER"),
        ({"PUBLIC_KEY": "k.pem", "ISSUER": ISSUER}, "without RAG_ASSETS_JWT_ISSUER"),
        ({"SECRET": SECRET, "LEEWAY": "86400"}, "RAG_ASSETS_JWT_LEEWAY"),
        ({"JWKS": "http://x/keys", "ISSUER": ISSUER, "AUDIENCE": AUDIENCE},
         "neither a file nor an https URL"),
        ({"PUBLIC_KEY": "/none", "ISSUER": ISSUER, "AUDIENCE": AUDIENCE},
         "not a readable public key"),
    ],
)  # fmt: skip
def test_settings_that_are_not_safe_are_refused(environment: dict[str, str], said: str) -> None:
    given = {f"RAG_ASSETS_JWT_{name}": value for name, value in environment.items()}
    with pytest.raises(ConfigurationError) as caught:
        build_key_finder(ServiceSettings.from_environment(given).jwt or HMAC)
    assert said in caught.value.advice
    assert SECRET not in caught.value.advice


def test_weak_keys_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "weak.pem"
    file.write_bytes(pem(ec.generate_private_key(ec.SECP192R1())))
    with pytest.raises(ConfigurationError, match="unsupported type of key"):
        build_key_finder(JwtSettings(public_key=file, issuer=ISSUER, audience=AUDIENCE))
