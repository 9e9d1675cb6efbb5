"""The version of the rules changes if and only if what they find does.

Documents are parsed again when the version changes, and at no other time: findings that change
without it leave credentials in the texts of all documents that were parsed before.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable, Iterator
from hashlib import sha256
from importlib.metadata import version
from random import Random
from typing import NamedTuple

import pytest

from rag_assets.privacy.secrets.names import value_kind
from rag_assets.privacy.secrets.scanner import RULES_VERSION, SecretScanner, rules_version
from rag_assets.privacy.secrets.values import ValueKind, is_cell_secret
from tests.security.credentials.clean import clean_samples
from tests.security.credentials.dataset import credential_samples, mixed_samples
from tests.security.credentials.kinds import KINDS
from tests.security.credentials.model import Credential

_CLEAN = ("prose/", "documentation/", "code/", "random/")
_MADE_OF_EACH_KIND = 3


class Pinned(NamedTuple):
    """What the rules of a version find.

    Attributes:
        version: of the rules.
        corpus: digest of the texts that are scanned.
        findings: digest of what is found in them.
    """

    version: str
    corpus: str
    findings: str


PINNED = Pinned("1+kingfisher-1.5.0", corpus="3e4689274966a401", findings="db59c4408ff7a604")


@pytest.mark.slow
def test_findings_change_only_with_the_version(scanner: SecretScanner) -> None:
    texts, cells = list(_texts()), list(_cells())
    present = Pinned(
        rules_version(),
        _digest([*texts, *(credential.text for credential in cells)]),
        _digest([*_found_in_texts(scanner, texts), *_found_in_cells(cells)]),
    )
    assert present == PINNED, _remedy(present)


def test_the_version_is_the_one_set_by_hand_and_kingfisher_s() -> None:
    installed = version("kingfisher-secret-scanner")
    assert rules_version() == f"{RULES_VERSION}+kingfisher-{installed}"


def test_the_version_is_known_without_loading_a_scanner() -> None:
    code = (
        "import sys; from rag_assets.privacy.secrets.scanner import rules_version;"
        "rules_version(); sys.exit('kingfisher_sdk' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def _texts() -> Iterator[str]:
    """Each kind of credential in each place that rules are tuned on, and texts without any."""
    for sample in (*credential_samples("tuning"), *mixed_samples("tuning")):
        if sample.media_type is None:
            yield sample.text
    for sample in clean_samples("tuning", Random("clean")):
        # Files of installed packages change with these.
        if sample.context.startswith(_CLEAN):
            yield sample.text


def _cells() -> Iterator[Credential]:
    """Credentials as cells of tables, which are masked by the same names and values."""
    for kind in KINDS:
        rng = Random(kind.name)
        for _ in range(_MADE_OF_EACH_KIND):
            yield kind.make(rng)


def _found_in_texts(scanner: SecretScanner, texts: Iterable[str]) -> Iterator[str]:
    for text in texts:
        yield repr([(span.start, span.end, span.rule) for span in scanner.scan(text)])


def _found_in_cells(cells: Iterable[Credential]) -> Iterator[str]:
    for credential in cells:
        yield str([str(value_kind(name)) for name in (credential.name, credential.label)])
        for kind in ValueKind:
            for described in (False, True):
                yield str(is_cell_secret(kind, credential.text, described=described))


def _digest(texts: Iterable[str]) -> str:
    return sha256("\0".join(texts).encode("utf-8", "surrogatepass")).hexdigest()[:16]


def _remedy(present: Pinned) -> str:
    pin = f"then set PINNED = {present!r}"
    if present.corpus != PINNED.corpus:
        return (
            "the scanned texts changed, which says nothing about the rules: run this test on the"
            f" former texts first; if it passes there, {pin}"
        )
    if present.version != PINNED.version:
        return f"the version changed, as it must whenever the rules find something else: {pin}"
    return (
        "the rules find something else than before: if that is intended, raise RULES_VERSION in"
        " rag_assets/privacy/secrets/scanner.py, so that all documents are parsed again;"
        f" run this test again, {pin}"
    )
