"""Placeholders for credentials, as documentation has them."""

from __future__ import annotations

import re

from rag_assets.privacy.secrets.vocabulary import WORDS, is_made_of_words

_FEW = 3
_DISTINCT = 6
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
_TOKEN_PARTS = ("xxxxx", "your", "example_", "placeholder", "redacted", "_here", "-here", "...")
_BRACKETED = re.compile(
    r"<[^<>]*>|\[[\w .:-]*\]|\{\{?[^{}]*\}\}?|\(\(?[\w .:-]*\)\)?|%[A-Za-z_]\w*%|%\(\w+\)s|%[sdvq](?:\\[rn])*|%{1,2}[\w().:]+%{1,2}|\$\w+\$|\{\w+\}[a-z]+"
    r"|__?[A-Z][A-Z_]+__?|@@?\w+@@?"
)
_VARIABLE = re.compile(
    r"[$#%!]\{|\{\{|\{%|<%|\$\(|\$(?:[A-Z_][A-Z0-9_]*|[a-z_][A-Za-z_]*\d{0,2})(?:$|[-/@,;)>\[.:])|\$\d$|&lt;|#\{"
)
_MENTIONED = re.compile(r"<[A-Za-z][\w .:|-]*>|\$\{\w|\{\{|#\{\w")
_ESCAPED_LETTERS = re.compile(r"(?:\\u[0-9a-fA-F]{4}){2,}")
_EXPRESSION = re.compile(r"\^.*\$")


def is_placeholder(value: str) -> bool:
    """Whether a value is a placeholder: `$VAR`, `<your-password>`, `changeme`, `****`."""
    bare = value.strip("\"'`“”‘’«» \t")
    lowered = bare.strip("()[]{}.,;:!?*_").lower()
    if not lowered:
        return len(set(bare)) <= _FEW
    if bare.endswith(("...", "…")) or bare.lower().startswith(_STARTS):
        return True
    return _is_reference(bare) or _is_description(lowered)


def _is_reference(bare: str) -> bool:
    """Whether a value refers to another: a variable, a template, a name in brackets."""
    if _VARIABLE.match(bare) or _MENTIONED.search(bare) or _ESCAPED_LETTERS.search(bare):
        return True
    if any(form.fullmatch(bare) for form in (_BRACKETED, _EXPRESSION, _NAMES)):
        return True
    parts = bare.split("_")
    return len(parts) > 1 and bare.isupper() and bare.isascii() and not _CAPITALS.isdisjoint(parts)


def _is_description(lowered: str) -> bool:
    """Whether a value describes what belongs there, or repeats one or two characters."""
    if len(set(lowered)) < _FEW or is_made_of_words(lowered) or lowered.endswith(_ENDS):
        return True
    if "|" in lowered and lowered.partition("|")[0] in WORDS:
        return True
    return any(part in lowered for part in _PARTS)


def is_token_placeholder(body: str) -> bool:
    """Whether what follows a token's prefix is a placeholder: `ghp_xxxxxxxx`."""
    lowered = body.lower()
    return len(set(lowered)) < _DISTINCT or any(part in lowered for part in _TOKEN_PARTS)
