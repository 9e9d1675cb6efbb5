"""Keys of several lines."""

from __future__ import annotations

import base64
import json
from random import Random

from tests.security.credentials.model import Credential, Kind
from tests.security.credentials.values import ALNUM, base64_of, chars, hexa, wrapped

_DASHES = "-" * 5


def _framed(name: str, body: str, headers: str = "") -> Credential:
    """Return a block between BEGIN and END, whose frame may be masked or not."""
    first = f"{_DASHES}BEGIN {name}{_DASHES}\n{headers}"
    last = f"\n{_DASHES}END {name}{_DASHES}"
    text = first + body + last
    end = len(first) + len(body)
    may = ((0, len(first)), (end, len(text)))
    return Credential(text, ((len(first), end),), may, "TLS_KEY", "private key")


def _pem(kind: str, start: bytes, size: int) -> Kind:
    name = f"{kind}PRIVATE" + " KEY"

    def make(rng: Random) -> Credential:
        body = base64.b64encode(start + rng.randbytes(size - len(start))).decode()
        return _framed(name, wrapped(body))

    return Kind(f"pem-{kind.strip().lower() or 'pkcs8'}", "block", make)


def _encrypted(rng: Random) -> Credential:
    headers = f"Proc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,{hexa(rng, 32).upper()}\n\n"
    return _framed("RSA PRIVATE" + " KEY", wrapped(base64_of(rng, 600)), headers)


def _pgp(rng: Random) -> Credential:
    body = wrapped(base64_of(rng, 900)) + "\n=" + chars(rng, ALNUM, 4)
    return _framed("PGP PRIVATE" + " KEY BLOCK", body, "Version: GnuPG v2\n\n")


def _ppk(rng: Random) -> Credential:
    public, private = wrapped(base64_of(rng, 144)), wrapped(base64_of(rng, 100))
    head = "PuTTY-User-Key" + "-File-2: ssh-rsa\nEncryption: none\nComment: imported\n"
    head += f"Public-Lines: {public.count(chr(10)) + 1}\n{public}\n"
    head += "Private" + f"-Lines: {private.count(chr(10)) + 1}\n"
    tail = f"\nPrivate-MAC: {hexa(rng, 40)}"
    text = head + private + tail
    end = len(head) + len(private)
    may = ((0, len(head)), (end, len(text)))
    return Credential(text, ((len(head), end),), may, "PPK", "PuTTY key")


def _headerless(rng: Random) -> Credential:
    start = bytes.fromhex("308204a4" + "0201000282010100")
    text = wrapped(base64.b64encode(start + rng.randbytes(1180)).decode())
    return Credential(text, ((0, len(text)),), (), "PRIVATE_KEY", "private key")


def _service_account(rng: Random) -> Credential:
    pem = _framed("PRIVATE" + " KEY", wrapped(base64_of(rng, 1200))).text + "\n"
    head = {"type": "service_account", "project_id": "acme-prod", "private_key_id": hexa(rng, 40)}
    mail = {"client_email": "ci@acme-prod.iam.gserviceaccount.com"}
    text = json.dumps({**head, "private" + "_key": pem, **mail}, indent=2)
    value = json.dumps(pem)[1:-1]
    at = text.index(value)
    body = at + value.index("\\n") + 2
    end = at + value.rindex("\\n" + _DASHES)
    key_id = text.index(head["private_key_id"])
    may = ((key_id, key_id + 40), (at, body), (end, at + len(value)))
    return Credential(text, ((body, end),), may, "GOOGLE_CREDENTIALS", "service account key")


def _kubeconfig(rng: Random) -> Credential:
    pem = _framed("RSA PRIVATE" + " KEY", wrapped(base64_of(rng, 600))).text
    value = base64.b64encode(pem.encode()).decode()
    head = "users:\n- name: admin\n  user:\n    client-key" + "-data: "
    text = head + value
    return Credential(text, ((len(head), len(text)),), (), "KUBECONFIG", "client key")


def _aws_file(rng: Random) -> Credential:
    key_id = "AK" + "IA" + chars(rng, "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567", 16)
    secret = chars(rng, ALNUM + "/+", 40)
    head = "[default]\naws_access_key_id = "
    middle = "\naws_secret_access_" + "key = "
    text = head + key_id + middle + secret
    first = (len(head), len(head) + len(key_id))
    return Credential(text, (first, (len(text) - 40, len(text))), (), "AWS", "AWS keys")


KINDS: tuple[Kind, ...] = (
    _pem("RSA ", bytes.fromhex("308204a30201000282010100"), 1190),
    _pem("EC ", bytes.fromhex("30770201010420"), 121),
    _pem("DSA ", bytes.fromhex("308201bb0201000281810" + "0"), 444),
    _pem("OPENSSH ", b"openssh-" + b"key-v1\0", 400),
    _pem("", bytes.fromhex("308204be020100300d0609"), 1218),
    _pem("ENCRYPTED ", bytes.fromhex("308205103049060960"), 1300),
    Kind("pem-rsa-encrypted", "block", _encrypted),
    Kind("pgp", "block", _pgp),
    Kind("putty", "block", _ppk),
    Kind("headerless", "block", _headerless),
    Kind("gcp-service-account", "block", _service_account),
    Kind("kubeconfig", "block", _kubeconfig),
    Kind("aws-file", "block", _aws_file),
)
