"""The version of the rules changes if and only if their findings do.

A new version makes all documents be parsed again, and nothing else does. If findings change without
it, credentials stay in the texts of all documents that were parsed before.
"""

import pkgutil
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from functools import partial
from hashlib import sha256
from importlib import import_module
from importlib.metadata import version
from random import Random
from typing import Any, NamedTuple

import pytest

from rag_assets.privacy import secrets
from rag_assets.privacy.secrets import logins
from rag_assets.privacy.secrets.names import find_value_kind
from rag_assets.privacy.secrets.rules import Rule
from rag_assets.privacy.secrets.scanner import RULES_VERSION, SecretScanner, rules_version
from rag_assets.privacy.secrets.tokens import TokenKind, read_token_rules
from rag_assets.privacy.secrets.values import ValueKind, is_cell_secret
from tests.cost import untraced
from tests.security.credentials.clean import clean_samples
from tests.security.credentials.dataset import credential_samples, mixed_samples
from tests.security.credentials.kinds import KINDS
from tests.security.credentials.model import Credential

_CLEAN = ("prose/", "documentation/", "code/", "random/")
_MADE_OF_EACH_KIND = 3


class Pinned(NamedTuple):
    """The rules of a version.

    Attributes:
        version: of the rules.
        tables: digest of their patterns, words and limits.
        corpus: digest of the texts that are scanned.
        findings: digest of the findings in them.
    """

    version: str
    tables: str
    corpus: str
    findings: str


PINNED = Pinned(
    "7+kingfisher-1.5.0",
    tables="504a5fcc630f1b2c",
    corpus="3e4689274966a401",
    findings="fe7b4502bad65153",
)


def test_tables_change_only_with_the_version() -> None:
    present = PINNED._replace(version=rules_version(), tables=_digest(sorted(_tables())))
    assert present == PINNED, _remedy(present)


@pytest.mark.slow
@pytest.mark.long
def test_findings_change_only_with_the_version(scanner: SecretScanner) -> None:
    with untraced():
        texts, cells = list(_texts()), list(_cells())
        present = PINNED._replace(
            version=rules_version(),
            corpus=_digest([*texts, *(credential.text for credential in cells)]),
            findings=_digest([*_found_in_texts(scanner, texts), *_found_in_cells(cells)]),
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


def test_a_constant_counts_by_its_value_not_by_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    before = sorted(_tables())
    monkeypatch.setattr(logins, "_ANOTHER_NAME", logins._MIN_PASSWORD_LENGTH, raising=False)
    monkeypatch.delattr(logins, "_MIN_PASSWORD_LENGTH")
    assert sorted(_tables()) == before
    monkeypatch.setattr(logins, "_ANOTHER_NAME", 5)
    assert sorted(_tables()) != before


@pytest.mark.parametrize("part", ["lozinka", "letmein", "twitch-token", "\u0430", "identified"])
def test_names_placeholders_tokens_letters_and_anchors_count(part: str) -> None:
    assert any(part in table for table in _tables())


def _tables() -> Iterator[str]:
    """Yield the constants of all modules of rules, and the table of tokens."""
    seen: set[int] = set()
    for module in pkgutil.iter_modules(secrets.__path__, f"{secrets.__name__}."):
        for name, value in vars(import_module(module.name)).items():
            if name.startswith("__") or name == "RULES_VERSION":
                continue
            imported = not isinstance(value, int | float | str) and id(value) in seen
            seen.add(id(value))
            if not imported and (described := _described(value)):
                yield described
    for rule in read_token_rules():
        yield _described(rule)


def _described(value: Any) -> str:
    """Return the content of a constant; empty for functions and classes."""
    if isinstance(value, Rule):
        value = (value.anchors, value.find)
    if isinstance(value, TokenKind):
        value = (value.name, value.prefix, value.body, value.run)
    match value:
        case re.Pattern():
            content = f"{value.pattern!r}/{value.flags}"
        case str() | bytes() | int() | float():
            content = repr(value)
        case partial():
            content = _described(value.args)
        case dict():
            content = str(sorted(f"{_described(k)}: {_described(v)}" for k, v in value.items()))
        case frozenset() | set():
            content = str(sorted(map(_described, value)))
        case tuple() | list():
            content = str([_described(item) for item in value])
        case _:
            content = ""
    return content


def _texts() -> Iterator[str]:
    """Yield each kind of credential in each context for tuning, and clean texts."""
    for sample in (*credential_samples("tuning"), *mixed_samples("tuning")):
        if sample.media_type is None:
            yield sample.text
    for sample in clean_samples("tuning", Random("clean")):
        # Files of installed packages change with these.
        if sample.context.startswith(_CLEAN):
            yield sample.text


def _cells() -> Iterator[Credential]:
    """Yield credentials as table cells, which are masked by the same names and values."""
    for kind in KINDS:
        rng = Random(kind.name)
        for _ in range(_MADE_OF_EACH_KIND):
            yield kind.make(rng)


def _found_in_texts(scanner: SecretScanner, texts: Iterable[str]) -> Iterator[str]:
    for text in texts:
        yield repr([(span.start, span.end, span.rule) for span in scanner.scan(text)])


def _found_in_cells(cells: Iterable[Credential]) -> Iterator[str]:
    for credential in cells:
        yield str([str(find_value_kind(name)) for name in (credential.name, credential.label)])
        for kind in ValueKind:
            for described in (False, True):
                yield str(is_cell_secret(kind, credential.text, is_described=described))


def _digest(texts: Iterable[str]) -> str:
    return sha256("\0".join(texts).encode("utf-8", "surrogatepass")).hexdigest()[:16]


def _remedy(present: Pinned) -> str:
    pin = f"then set PINNED = {present!r}"
    if present.version != PINNED.version:
        return f"the version changed, as it must whenever findings do: {pin}"
    raise_it = (
        "raise RULES_VERSION in rag_assets/privacy/secrets/scanner.py, so that all that is stored"
        " is scanned again, and run this test again"
    )
    if present.corpus != PINNED.corpus:
        return (
            "the scanned texts changed, which proves nothing about the rules: run this test on the"
            f" former texts; if it passes there, {pin}; if not, {raise_it}"
        )
    if present.findings != PINNED.findings:
        return f"the rules find something else than before: if that is intended, {raise_it}"
    return (
        f"a pattern, a word or a limit of the rules changed: {raise_it}; only if no finding in any"
        f" text can change, {pin}"
    )
