"""Glob patterns with the meaning that git gives them, matched in linear time.

The patterns of a .gitignore come with the documents, from untrusted authors, so a pattern must not
be able to stall a listing. As a plain regular expression, `*a*a*a*b` takes seconds per file name.
Here every star but the last keeps its first match (an atomic group); for globs, this finds the same
matches. Names are matched as bytes, as in git, so that any name can be matched.
"""

from __future__ import annotations

import re
import string
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

_CLASSES = {
    b"alnum": string.ascii_letters + string.digits,
    b"alpha": string.ascii_letters,
    b"blank": " \t",
    b"cntrl": "".join(map(chr, [*range(32), 127])),
    b"digit": string.digits,
    b"graph": "".join(map(chr, range(33, 127))),
    b"lower": string.ascii_lowercase,
    b"print": "".join(map(chr, range(32, 127))),
    b"punct": string.punctuation,
    b"space": " \t\n\r",
    b"upper": string.ascii_uppercase,
    b"xdigit": string.hexdigits,
}


def read_bracket(pattern: bytes, start: int) -> tuple[bytes, int]:
    """Translate the bracket expression that starts at pattern[start].

    Return a regular expression for one byte, and the position after the closing bracket.

    Raises:
        ValueError: the expression is not closed or names an unknown class.
    """
    at = start + 1
    is_negated = pattern[at : at + 1] in (b"!", b"^")
    at += is_negated
    first = at
    members: set[int] = set()
    previous = -1  # a range needs a plain character before its dash
    while at == first or _get_byte(pattern, at) != ord("]"):
        char = _get_byte(pattern, at)
        class_name = _read_class_name(pattern, at)
        if class_name is not None:
            members.update(_CLASSES[class_name].encode())
            at += len(class_name) + 4
            previous = -1
        elif char == ord("-") and previous >= 0 and _get_byte(pattern, at + 1) != ord("]"):
            end, at = _read_escaped_character(pattern, at + 1)
            members.update(range(previous, end + 1))
            previous = -1
        else:
            previous, at = _read_escaped_character(pattern, at)
            members.add(previous)
    if is_negated:
        members = set(range(256)) - members
    members.discard(ord("/"))  # a bracket expression never matches the path separator
    body = b"".join(b"\\x%02x" % member for member in sorted(members))
    return (b"[" + body + b"]" if body else b"(?!)"), at + 1


def _get_byte(pattern: bytes, at: int) -> int:
    if at >= len(pattern):
        raise ValueError("a bracket expression is not closed")
    return pattern[at]


def _read_escaped_character(pattern: bytes, at: int) -> tuple[int, int]:
    """Return the character at a position, which may be escaped, and the position after it."""
    if _get_byte(pattern, at) == ord("\\"):
        at += 1
    return _get_byte(pattern, at), at + 1


def _read_class_name(pattern: bytes, at: int) -> bytes | None:
    """Return NAME if the text at a position starts with [:NAME:], else None."""
    if pattern[at : at + 2] != b"[:":
        return None
    end = pattern.find(b"]", at + 2)
    if end < 0:
        raise ValueError("a bracket expression is not closed")
    if end == at + 2 or pattern[end - 1 : end] != b":":
        return None
    name = pattern[at + 2 : end - 1]
    if name not in _CLASSES:
        raise ValueError("a bracket expression has an unknown character class")
    return name


MAX_GITIGNORE_BYTES = 256 * 1024
MAX_WILDCARDS = 2_000

# Markers among the tokens of a pattern; no token for a byte is equal to a marker.
_STAR: Final = b"*"  # anything within one path component
_FOLDERS: Final = b"/*"  # any number of path components, including none
_SOME_FOLDERS: Final = b"/+"  # at least one path component
_EVERYTHING: Final = b"//"  # the rest of the path

_SPECIAL = re.compile(rb"[*?\[\\]")


@dataclass(frozen=True, slots=True)
class GlobRule:
    """A parsed pattern.

    Attributes:
        suffix: the required end of the name, if the pattern is a star followed by a literal.
        matches_name: whether the pattern is compared with the name alone, at any depth, since it
            contains no slash.
        matches_only_folders: whether the pattern matches only folders, since it ended in a slash.
    """

    regex: bytes
    literal: bytes | None
    suffix: bytes | None
    matches_name: bool
    matches_only_folders: bool
    is_negated: bool


def parse_rule(pattern: bytes) -> GlobRule | None:
    """Parse one pattern; return None if it is malformed, since git then never matches it."""
    is_negated = pattern.startswith(b"!")
    body = pattern[1:] if is_negated else pattern
    matches_only_folders = body.endswith(b"/")
    body = body[:-1] if matches_only_folders else body
    while body.startswith(b"**/") and b"/" not in body[3:]:
        body = body[3:]  # `**/name` has the same meaning as `name`, which is faster to match
    matches_name = b"/" not in body
    if not body:
        return None
    body = body.removeprefix(b"/")
    try:
        regex = _translate(body)
    except ValueError:
        return None
    literal = None if _SPECIAL.search(body) else body
    tail = body[1:] if matches_name and body.startswith(b"*") else b""
    suffix = tail if tail and not _SPECIAL.search(tail) else None
    return GlobRule(regex, literal, suffix, matches_name, matches_only_folders, is_negated)


class GlobRules:
    """An ordered list of rules; for each entry, the last rule that matches it is decisive."""

    __slots__ = ("_files_by_name", "_files_by_path", "_folders_by_name", "_folders_by_path")

    def __init__(self, rules: Sequence[GlobRule], *, ignore_case: bool = False) -> None:
        for_files = [(n, rule) for n, rule in enumerate(rules) if not rule.matches_only_folders]
        for_folders = list(enumerate(rules))
        self._files_by_name = _Alternatives(for_files, by_name=True, ignore_case=ignore_case)
        self._files_by_path = _Alternatives(for_files, by_name=False, ignore_case=ignore_case)
        self._folders_by_name = _Alternatives(for_folders, by_name=True, ignore_case=ignore_case)
        self._folders_by_path = _Alternatives(for_folders, by_name=False, ignore_case=ignore_case)

    def decide(self, folder: bytes, name: bytes, *, is_folder: bool) -> bool | None:
        """Return the decision of the last rule that matches an entry itself, not a folder above it.

        True stands for a plain rule, False for a negated one, None for no rule. The entry's folder
        is below the rules' own folder, and is empty or ends in a slash.
        """
        last = self._find_last_verdict(folder, name, is_folder=is_folder)
        return None if last < 0 else not last & 1

    def find_deciding_rule(self, folder: bytes, name: bytes) -> int | None:
        """Return the index of the last rule that matches a file; None if no rule matches."""
        last = self._find_last_verdict(folder, name, is_folder=False)
        return None if last < 0 else last >> 1

    def _find_last_verdict(self, folder: bytes, name: bytes, *, is_folder: bool) -> int:
        by_name = self._folders_by_name if is_folder else self._files_by_name
        by_path = self._folders_by_path if is_folder else self._files_by_path
        last = by_name.find_last_verdict(name)
        if not by_path.is_empty:
            last = max(last, by_path.find_last_verdict(folder + name))
        return last


class _Alternatives:
    """Rules for the same text, name or path; most are looked up as literals or suffixes."""

    __slots__ = ("_any", "_exact", "_flags", "_lengths", "_other_rules", "_suffixes", "is_empty")

    def __init__(
        self, rules: Iterable[tuple[int, GlobRule]], *, by_name: bool, ignore_case: bool
    ) -> None:
        self._flags = re.DOTALL | (re.IGNORECASE if ignore_case else 0)
        self._exact: dict[bytes, int] = {}
        self._suffixes: dict[bytes, int] = {}
        self._other_rules: list[tuple[int, bytes]] = []
        candidates = [(n, rule) for n, rule in rules if rule.matches_name is by_name]
        for n, rule in candidates:
            # Position and negation are one number, so that comparing verdicts compares positions.
            verdict = n * 2 + rule.is_negated
            if rule.literal is not None:
                self._exact[self._fold_case(rule.literal)] = verdict
            elif rule.suffix is not None:
                self._suffixes[self._fold_case(rule.suffix)] = verdict
            else:
                self._other_rules.append((verdict, rule.regex))
        self.is_empty = not candidates
        self._lengths = sorted({len(suffix) for suffix in self._suffixes})
        self._other_rules.reverse()
        joined = b"|".join(regex for _, regex in self._other_rules)
        self._any = _compile_regex(joined, self._flags) if self._other_rules else None

    def find_last_verdict(self, text: bytes) -> int:
        """Return the verdict of the last rule that matches a text; -1 if no rule matches.

        A verdict is twice the index of the rule, plus 1 if the rule is negated.
        """
        folded = self._fold_case(text)
        best = self._exact.get(folded, -1)
        for length in self._lengths:
            best = max(best, self._suffixes.get(folded[-length:], -1))
        if self._any is not None and self._any.match(text):
            for verdict, regex in self._other_rules:
                if verdict < best:
                    break
                if _compile_regex(regex, self._flags).match(text):
                    return verdict
        return best

    def _fold_case(self, text: bytes) -> bytes:
        return text.lower() if self._flags & re.IGNORECASE else text


@lru_cache(maxsize=2 * MAX_WILDCARDS)
def _compile_regex(regex: bytes, flags: int) -> re.Pattern[bytes]:
    return re.compile(b"(?:" + regex + rb")\Z", flags)


def compile_globs(patterns: Iterable[str], *, ignore_case: bool) -> GlobRules:
    """Parse the globs of a configuration; raise ValueError for a glob that never matches."""
    rules = []
    for pattern in patterns:
        rule = parse_rule(pattern.encode("utf-8", "surrogateescape"))
        if rule is None:
            raise ValueError(f"the glob {pattern!r} is empty or malformed")
        rules.append(rule)
    return GlobRules(rules, ignore_case=ignore_case)


@lru_cache(maxsize=256)  # many folders have the same short .gitignore
def compile_gitignore(content: bytes) -> GlobRules:
    """Parse and compile the content of a .gitignore; malformed patterns are ignored.

    Raises:
        ValueError: the content is longer than MAX_GITIGNORE_BYTES, or has more than
            MAX_WILDCARDS patterns that would have to be tried one by one.
    """
    if len(content) > MAX_GITIGNORE_BYTES:
        raise ValueError(f"the file has more than {MAX_GITIGNORE_BYTES} bytes")
    rules = []
    for raw in content.removeprefix(b"\xef\xbb\xbf").split(b"\n"):
        line = _strip_trailing_spaces(raw.removesuffix(b"\r"))
        if line and not line.startswith(b"#"):
            rule = parse_rule(line)
            if rule is not None:
                rules.append(rule)
    if sum(rule.literal is None and rule.suffix is None for rule in rules) > MAX_WILDCARDS:
        raise ValueError(f"the file has more than {MAX_WILDCARDS} patterns with wildcards")
    return GlobRules(rules)


def _strip_trailing_spaces(line: bytes) -> bytes:
    """Remove trailing spaces, except a space that is escaped by a backslash."""
    bare = line.rstrip(b" ")
    backslashes = len(bare) - len(bare.rstrip(b"\\"))
    return line[: len(bare) + 1] if backslashes % 2 and len(bare) < len(line) else bare


def _translate(pattern: bytes) -> bytes:
    """Return a regular expression that matches the same whole texts as a pattern."""
    special = _SPECIAL.search(pattern)
    start = special.start() if special else len(pattern)
    # As in git, the literal start is compared first, and the rest is matched as a separate pattern.
    out = [re.escape(pattern[:start])]
    gap = b""
    block: list[bytes] = []
    for token in _iter_tokens(pattern[start:]):
        if token not in (_FOLDERS, _SOME_FOLDERS, _EVERYTHING):
            block.append(token)
            continue
        # The part between two gaps may keep its earliest match.
        out.append(
            b"(?>" + gap + b"?" + _translate_block(block) + b")" if gap else _translate_block(block)
        )
        gap = b".*" if token == _EVERYTHING else b"(?:[^/]*+/)" + token[-1:]
        block = []
    return b"".join([*out, gap, _translate_block(block)])


def _translate_block(tokens: Sequence[bytes]) -> bytes:
    """Return a regular expression for tokens that do not cross folders."""
    out = []
    for component in _split(tokens, b"/"):
        first, *starred = _split(component, _STAR)
        parts = [b"".join(first)]
        parts += [b"(?>[^/]*?" + b"".join(fixed) + b")" for fixed in starred[:-1]]
        parts += [b"[^/]*" + b"".join(fixed) for fixed in starred[-1:]]
        out.append(b"".join(parts))
    return b"/".join(out)


def _split(tokens: Sequence[bytes], separator: bytes) -> list[list[bytes]]:
    parts: list[list[bytes]] = [[]]
    for token in tokens:
        if token == separator:
            parts.append([])
        else:
            parts[-1].append(token)
    return parts


def _iter_tokens(pattern: bytes) -> Iterator[bytes]:
    """Yield a pattern's tokens: regular expressions for single bytes, and the markers above."""
    at = 0
    while at < len(pattern):
        char = pattern[at : at + 1]
        if char == b"*":
            token, at = _read_stars(pattern, at)
        elif char == b"[":
            token, at = read_bracket(pattern, at)
        elif char == b"\\":
            char = pattern[at + 1 : at + 2]
            if not char:
                raise ValueError("the pattern ends with a backslash")
            token, at = re.escape(char), at + 2
        else:
            token, at = (b"[^/]" if char == b"?" else re.escape(char)), at + 1
        yield token


def _read_stars(pattern: bytes, at: int) -> tuple[bytes, int]:
    """Return the marker for a run of stars, and the position after the run."""
    end = at
    while pattern[end : end + 1] == b"*":
        end += 1
    # Two or more stars cross folders only if they make up a whole path component.
    if end - at > 1 and pattern[:at][-1:] in (b"", b"/"):
        if end == len(pattern):
            return _EVERYTHING, end
        if pattern[end : end + 1] == b"/":
            return _FOLDERS, end + 1
        if pattern[end : end + 2] == b"\\/":
            return _SOME_FOLDERS, end + 2
    return _STAR, end
