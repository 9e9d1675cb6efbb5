"""Clean texts: those of the halves, and pages and code of installed packages.

The packages are those of the lock file, so the texts are the same everywhere. Examples of
credentials in them (a URI with a password, a key's frame) count as neither right nor wrong.
"""

from __future__ import annotations

import re
import sysconfig
from collections.abc import Iterator, Mapping
from importlib import import_module
from pathlib import Path
from random import Random
from types import MappingProxyType

from tests.security.credentials.model import Half, Sample, Span
from tests.security.credentials.values import ALNUM, DIGITS, LOWER, base64_of, chars, hexa, uuid

_ROUNDS = 6
_LONGEST_FILE = 40_000
_FILES_OF_A_PACKAGE = 6
_SUFFIXES = frozenset(
    {".py", ".md", ".rst", ".txt", ".yaml", ".yml", ".toml", ".json", ".ini", ".cfg", ".js", ".css"}
)
_WORDS = re.compile(r"passw|token|secret|api_?key|credential|authoriz", re.IGNORECASE)

PACKAGES: Mapping[Half, tuple[str, ...]] = MappingProxyType(
    {
        "tuning": (
            "sqlalchemy",
            "jwt",
            "dagster",
            "openai",
            "fastapi",
            "alembic",
            "httpx",
            "docling_core",
            "huggingface_hub",
            "click",
            "llmock",
            "schemathesis",
            "dagster_webserver",
            "psycopg",
        ),
        "held_out": (
            "starlette",
            "cryptography",
            "mcp",
            "great_expectations",
            "elasticsearch",
            "google",
            "dagster_graphql",
            "requests",
            "aiohttp",
            "pydantic_settings",
            "playwright",
            "pptx",
            "dagster_postgres",
            "werkzeug",
            "uvicorn",
            "pip",
        ),
    }
)

_EXAMPLES = re.compile(
    r"""
    [a-z][a-z0-9+.-]*://[^/\s:@'"]*:[^@\s/]+@            # a URI with a password
    | -----BEGIN[ ][A-Z ]*PRIVATE                         # a key
    | \beyJ[A-Za-z0-9_-]{8,}                              # a JWT
    | \b(?:Bearer|Basic)[ ](?![<${"'])[A-Za-z0-9._~+/=-]{6,}
    | (?:passw(?:or)?d|passphrase|pwd|secret|token|api_?key)[\w"'\]]*\s*[:=]+\s*
      [rbuf]{0,2}["'][^"'\s{}<$]+["']                    # a literal
    | \b(?:sk|pk|gh[pousr]|hf|xox[abp]|glpat|AKIA|AIza|SG)[-_.]?[A-Za-z0-9_-]{12,}
    | \$2[aby]\$|\$[156]\$|\$apr1\$
    """,
    re.VERBOSE | re.IGNORECASE,
)


def clean_samples(half: Half, rng: Random) -> Iterator[Sample]:
    """Yield texts in which nothing must be masked."""
    texts = import_module(f"tests.security.credentials.{half}.clean_texts")
    for name in ("PROSE", "DOCUMENTATION", "CODE"):
        for number, line in enumerate(getattr(texts, name).splitlines()):
            yield Sample(line, (), "clean", f"{name.lower()}/{number}", half)
        yield Sample(getattr(texts, name), (), "clean", f"{name.lower()}/together", half)
    for number, line in enumerate(texts.RANDOM.splitlines() * _ROUNDS):
        yield Sample(_filled(line, rng), (), "clean", f"random/{number}", half)
    for package in PACKAGES[half]:
        yield from _of_package(package, half)


def _filled(line: str, rng: Random) -> str:
    values = {
        "hex7": hexa(rng, 7),
        "hex16": hexa(rng, 16),
        "hex20": hexa(rng, 20),
        "hex32": hexa(rng, 32),
        "hex40": hexa(rng, 40),
        "hex64": hexa(rng, 64),
        "uuid": uuid(rng),
        "base64_32": base64_of(rng, 32),
        "base64_48": base64_of(rng, 48),
        "base64_64": base64_of(rng, 64),
        "base64_32_plain": chars(rng, ALNUM, 43),
        "base36": chars(rng, LOWER + DIGITS, 12),
    }
    return line.format(**values)


def _of_package(package: str, half: Half) -> Iterator[Sample]:
    root = Path(sysconfig.get_path("purelib"))
    files = [f for f in sorted((root / package).rglob("*")) if f.suffix in _SUFFIXES]
    metadata = sorted(root.glob(f"{package}-*.dist-info/METADATA"))
    ranked = sorted(files, key=lambda file: (-_uses(file), str(file)))
    for file in [*metadata, *ranked[:_FILES_OF_A_PACKAGE]]:
        text = _text(file)
        if text:
            yield Sample(text, (), "clean", str(file.relative_to(root)), half, may=_examples(text))


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")[:_LONGEST_FILE]
    except (UnicodeDecodeError, OSError):
        return ""


def speaks_of_credentials(line: str) -> bool:
    """Return whether a line has a word such as password or token."""
    return _WORDS.search(line) is not None


def _uses(file: Path) -> int:
    return len(_WORDS.findall(_text(file)))


def _examples(text: str) -> tuple[Span, ...]:
    """Return the spans of lines with an example of a credential, and of a key's further lines."""
    spans: list[Span] = []
    at = 0
    for line in text.splitlines(keepends=True):
        if _EXAMPLES.search(line):
            spans.append((at, at + len(line)))
        at += len(line)
    return tuple(spans)
