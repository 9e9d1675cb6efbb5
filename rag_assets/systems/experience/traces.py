"""Parses stack traces and error lines, condenses them, and computes keys of their errors.

A trace is condensed to the lines of its exceptions. The key of an error combines the type of the
exception, the template of its message and the innermost frame of the project's own code. It is
equal on every machine and in every checkout. The formats of frames are in frames.py.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Final

from rag_assets.common.hashing import compute_key
from rag_assets.systems.experience.frames import (
    MAX_LINE_CHARACTERS,
    NON_FRAME_LINE,
    PYTHON_FRAME,
    RUBY_CALLER,
    RUBY_FRAME,
    TIME,
    Frame,
    build_frame,
    is_blank_between_frames,
    parse_frame,
    split_lines,
    strip_log_prefix,
)

MAX_PLAIN_LINES: Final = 12
"""Maximum number of lines of a text that is not reduced to its error lines, like a log."""
_KEPT_END_LINES: Final = 3
_MAX_TRACES: Final = 8
_MAX_HEADER_LINES: Final = 15
_MIN_WORDS: Final = 3
"""Minimum number of words in a message that identifies an error without a specific type."""
_NO_FRAME, _ANY_FRAME = "-", "*"


@dataclass(frozen=True, slots=True)
class RaisedError:
    """An exception, a panic or an error that a text reports.

    Attributes:
        type: type without its module; empty for an error without a type.
    """

    type: str
    message: str
    frame: Frame | None = None

    @property
    def one_line(self) -> str:
        """Return type and message in one line."""
        return ": ".join(filter(None, (self.type, self.message)))

    def build_key(self, frame: str | None = None) -> str | None:
        """Return the key of the error; None if the error is too unspecific for a key.

        Args:
            frame: location to use instead of the location of the error's frame.
        """
        template = normalize_line(self.message)
        has_type = bool(self.type) and self.type.casefold() not in _GENERAL_TYPES
        if frame is None and self.frame is not None:
            frame = self.frame.location
        if not has_type and len(template.split()) < _MIN_WORDS:
            return None
        if not template and frame in {None, _NO_FRAME, _ANY_FRAME}:
            return None
        name = self.type if has_type else ""
        return compute_key("error signature", name, template.casefold(), frame or _NO_FRAME)


@dataclass(frozen=True, slots=True)
class Trace:
    """The exceptions of one failure, from the reported exception to the root cause.

    Attributes:
        first_line, end_line: range of its lines in the text; the end is exclusive.
    """

    chain: tuple[RaisedError, ...]
    first_line: int
    end_line: int


@dataclass(frozen=True, slots=True)
class QuestionKeys:
    """Keys of the errors in a question.

    Attributes:
        located: keys for the same error at the same location in the project's own code.
        unlocated: keys for the same error without a complete location, for a question or an entry
            that lacks the location or the folder of the file.
    """

    located: tuple[str, ...]
    unlocated: tuple[str, ...]


def compute_stored_keys(prose: str, error: str | None) -> list[str]:
    """Return the keys of the errors in an entry; see compute_question_keys.

    Args:
        prose: a description, which may contain traces.
    """
    keys_in_order: dict[str, None] = {}
    for failure in _find_failures(prose, error):
        for raised in {failure.chain[0], failure.chain[-1]}:
            keys = [raised.build_key()]
            if raised.frame:
                keys += [
                    raised.build_key(raised.frame.short_location),
                    raised.build_key(_ANY_FRAME),
                ]
            keys_in_order |= dict.fromkeys(filter(None, keys))
    return sorted(keys_in_order)


def compute_question_keys(prose: str, error: str | None) -> QuestionKeys:
    """Return the keys that find entries with the errors of a question.

    The parts of a key that both the question and the entry have must be equal. Of a chain of
    exceptions, only the root cause is compared.

    Args:
        prose, error: see compute_stored_keys.
    """
    located, unlocated = dict[str, None](), dict[str, None]()
    for failure in _find_failures(prose, error):
        root = failure.chain[-1]
        if root.frame:
            located |= dict.fromkeys(filter(None, [root.build_key()]))
            other = (root.build_key(root.frame.short_location), root.build_key(_NO_FRAME))
            unlocated |= dict.fromkeys(filter(None, other))
        else:
            unlocated |= dict.fromkeys(filter(None, [root.build_key(), root.build_key(_ANY_FRAME)]))
    return QuestionKeys(tuple(located), tuple(unlocated))


def condense_traces(text: str) -> str:
    """Reduce each trace in a text to its exceptions and their locations in the project's code."""
    return "\n".join(_condense_lines(text, _format_with_location))


def condense_errors(text: str) -> str:
    """Return the text to embed for errors: their distinct lines, normalized by normalize_line().

    Of many lines, only the first and the last that report errors are kept.
    """
    lines = [normalize_line(line) for line in _condense_lines(text, lambda raised: raised.one_line)]
    distinct = list(dict.fromkeys(filter(None, lines)))
    if len(distinct) <= MAX_PLAIN_LINES:
        return "\n".join(distinct)
    errors = [line for line in distinct if _ERROR_WORD.search(line)] or distinct
    if len(errors) > 2 * _KEPT_END_LINES:
        errors = [*errors[:_KEPT_END_LINES], *errors[-_KEPT_END_LINES:]]
    return "\n".join(errors)


def condense_prose(text: str) -> str:
    """Return the text to embed for a description, with pasted traces and logs condensed."""
    lines = split_lines(text)
    logged = {line for line in lines if strip_log_prefix(line) != line}
    has_log = len(logged) > MAX_PLAIN_LINES
    if not has_log and not read_traces(lines):
        return text
    condensed = list(_condense_lines(text, lambda raised: normalize_line(raised.one_line)))
    if not has_log:
        return "\n".join(condensed)
    log = condense_errors("\n".join(line for line in condensed if line in logged))
    return "\n".join([*(line for line in condensed if line not in logged), log]).strip()


def find_error_line(prose: str, error: str | None) -> str | None:
    """Return type and message of the first root cause; None if the texts contain no error.

    Args:
        prose, error: see compute_stored_keys.
    """
    return next((failure.chain[-1].one_line for failure in _find_failures(prose, error)), None)


def normalize_line(line: str) -> str:
    """Return a line without folders, numbers, addresses and times.

    Exit codes, HTTP status codes and error numbers are kept.
    """
    line = strip_log_prefix(line[:MAX_LINE_CHARACTERS]).strip()
    for pattern, replacement in _VARYING:
        line = pattern.sub(replacement, line)
    codes: list[str] = []

    def keep(match: re.Match[str]) -> str:
        codes.append(match.group())
        return f"\x00{chr(0xE000 + len(codes) - 1)}\x00"

    line = _NUMBER.sub("0", _CODE.sub(keep, line))
    for at, code in enumerate(codes):
        line = line.replace(f"\x00{chr(0xE000 + at)}\x00", code)
    return " ".join(line.split())


def read_traces(lines: Sequence[str]) -> list[Trace]:
    """Return the traces in the lines of a text, in order."""
    bare = [strip_log_prefix(line[:MAX_LINE_CHARACTERS]) for line in lines]
    traces: list[Trace] = []
    at = 0
    while at < len(bare) and len(traces) < _MAX_TRACES:
        if _PYTHON_START.match(bare[at]) or parse_frame(bare, at) or _RUST_PANIC.match(bare[at]):
            floor = traces[-1].end_line if traces else 0
            trace = _parse_trace(bare, at, floor)
            at = max(trace.end_line, at + 1)
            traces = _add_trace(bare, traces, trace)
        else:
            at += 1
    return traces


# None of these expressions repeats a group that can be empty, so backtracking is limited.
_PYTHON_START = re.compile(r"[\s|+]*(?:Exception Group )?Traceback \(most recent call last\):")
_NODE_LOCATION = re.compile(r"(?:file://)?[/A-Z]\S*:\d+$")
"""Location that Node prints four lines above an uncaught exception."""
_RUST_PANIC = re.compile(
    r"thread '[^']*' (?:\(\d+\) )?panicked at (?:'(.*)', )?([^\s:']+):\d+:\d+:?$"
)
_RUBY_RAISED = re.compile(r"(.*) \(([A-Z]\w*(?:::\w+)*)\)$")
_LARAVEL_RAISED = re.compile(r".*\[object\] \(([\w\\]+)\(code: [^)]*\): (.*) at (\S+):\d+\)$")
_RAILS_RAISED = re.compile(r"([A-Z]\w*(?:::\w+)*) \((.+)\):?$")
_CAUSED_TEXT = "direct cause of the following exception"
_HANDLED_TEXT = "During handling of the above exception"
_ERROR_NAME = (
    r"(?:[A-Za-z_$][\w$]*(?:\.|::|\\+))*"
    r"(?:[A-Z][\w$]*)?(?:Error|Exception|Failure|Fault|Timeout|Interrupt|Panic|Abort|Warning|Exit)"
)
_BEFORE_TYPE = re.compile(
    r"""\s*(?:
        Exception\ in\ thread\ "[^"]*"\ + | Caused\ by:\ + | Suppressed:\ + | --->\ +
      | Unhandled\ [Ee]xception[.:]\ + | (?:PHP\ )?Fatal\ error:\s+(?=Uncaught) | Uncaught\ +
      | \(node:\d+\)\ (?:\w+Warning:\ )? | \(in\ promise\)\ + | \[cause\]:\ + | [{}]\s+
    )""",
    re.VERBOSE,
)
_TYPED = re.compile(
    rf"(?P<type>{_ERROR_NAME})(?: \[(?P<code>\w+)\])?(?: \(0x[0-9A-Fa-f]+\))?"
    r"(?:: *(?P<message>.*))?$"
)
_ANY_TYPED = re.compile(
    r"(?P<type>[A-Za-z_$][\w$]*(?:(?:\.|::|\\+)[\w$]+)*)(?: \[(?P<code>\w+)\])?"
    r"(?:: +(?P<message>.*))?$"
)
_GENERAL = re.compile(
    r"(?:(?P<file>[^\s:(]+)[:(]\d+(?:[:,]\d+)?\)?: )?"
    r"(?P<type>panic|(?:fatal |npm )?err(?:or)?!?|fatal)"
    r"(?:\[(?P<code>\w+)\]| (?P<number>[A-Z]+\d+))?: *(?P<message>\S.*)$",
    re.IGNORECASE,
)
_GENERAL_TYPES = frozenset(
    {"error", "fatal", "fatal error", "err", "err!", "npm err!", "npm error"}
)
_GO_SERVED = re.compile(r"http: panic serving \S+: (.+)$")
_PHP_LOCATION = re.compile(r" in (\S+?):\d+$")
_ERROR_WORD = re.compile(
    r"error|exception|fatal|panic|critical|severe|fail(?:ed|ure)|timeout|denied|refused", re.I
)

_REASONS = "|".join(re.escape(status.phrase) for status in HTTPStatus)
_CODE = re.compile(
    rf"""\b(?:code|status|errno|exit(?:ed)?(?:\ with)?|signal|http(?:/\d(?:\.\d)?)?|sqlstate|error)
        [\s:=\#\[(]{{0,3}}(?:0x[0-9a-f]+|\d\w*)\b | (?<![\w.])\d{{3}}(?=\ (?:{_REASONS})\b)""",
    re.VERBOSE | re.IGNORECASE,
)
_NUMBER = re.compile(r"(?<![A-Za-z0-9])\d+(?:[.,:]\d+)*")
_VARYING: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern, re.IGNORECASE), replacement)
    for pattern, replacement in (
        (TIME, "0"),
        (r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b", "0"),
        (r"(?<!code )(?<!status )\b0x[0-9a-f]{5,}\b", "0"),
        (r"(?<![\w])(?=[a-f]*\d)[0-9a-f]{8,}(?![\w])", "0"),
        (r"\b[\w.+-]+@[\w-]+(?:\.[\w-]+)+", "address"),
        (r"\b\d{1,3}(?:\.\d{1,3}){3}(?::\d+)?\b", "0"),
        # A path or an address keeps its last part; a folder alone keeps its name.
        (r"\b[a-z][a-z0-9+.-]*://[^\s'\"<>)\]]*?([^/\s'\"<>)\]]*)/?(?=[\s'\"<>)\]]|$)", r"\1"),
        (r"(?<![\w.])(?:[a-z]:)?(?:[\w.@~+-]*[/\\])+([\w.@~+-]+)[/\\]?", r"\1"),
        (r"(\.[a-z]\w{0,4}):\d+(?::\d+)?\b", r"\1"),
    )
)


def _find_failures(prose: str, error: str | None) -> list[Trace]:
    """Return the traces in both texts, and each error line outside them as a further trace."""
    failures = [*_find_failures_in_text(prose), *_find_failures_in_text(error or "")]
    if failures or error is None:
        return failures[:_MAX_TRACES]
    lines = [line for line in map(str.strip, error.splitlines()) if line]
    errors = [line for line in lines if _ERROR_WORD.search(line)] or lines
    if not errors:
        return []
    line = strip_log_prefix(errors[0])
    typed = _parse_typed_error(line, _ANY_TYPED)
    return [Trace((typed if typed and typed.message else RaisedError("", line),), 0, 1)]


def _find_failures_in_text(text: str) -> list[Trace]:
    lines = split_lines(text)
    traces = read_traces(lines)
    inside = {at for trace in traces for at in range(trace.first_line, trace.end_line)}
    for at, line in enumerate(lines):
        if at not in inside and (raised := _parse_error_line(line)):
            traces.append(Trace((raised,), at, at + 1))
    return traces


def _parse_error_line(line: str) -> RaisedError | None:
    """Return the error in a line; None if the line has no error."""
    line = strip_log_prefix(line[:MAX_LINE_CHARACTERS]).strip()
    typed = _parse_typed_error(line, _TYPED)
    if typed is not None:
        return typed if typed.message else None
    general = _GENERAL.match(line)
    if general is None:
        return None
    code = general["code"] or general["number"]
    frame = build_frame(general["file"], "") if general["file"] else None
    name = code or general["type"].casefold()
    return RaisedError(name, general["message"].strip(), frame if frame and frame.is_own else None)


def _condense_lines(text: str, format_error: Callable[[RaisedError], str]) -> Iterator[str]:
    lines = split_lines(text)
    at = 0
    for trace in read_traces(lines):
        yield from lines[at : trace.first_line]
        yield from dict.fromkeys(map(format_error, (trace.chain[0], trace.chain[-1])))
        at = trace.end_line
    yield from lines[at:]


def _format_with_location(raised: RaisedError) -> str:
    if raised.frame is None:
        return raised.one_line
    location = " in ".join(filter(None, (raised.frame.function, raised.frame.file)))
    return f"{raised.one_line} (at {location})"


def _parse_trace(lines: Sequence[str], start: int, floor: int) -> Trace:
    """Parse the trace that contains a line; its exceptions may be above or below.

    Args:
        start: index of the trace's first line or first frame.
        floor: index of the first line after the previous trace.
    """
    panic = _RUST_PANIC.match(lines[start])
    at, frames = start + 1 if panic or _PYTHON_START.match(lines[start]) else start, []
    if panic and panic[1] is None:
        at += 1
    while at < len(lines):
        step = parse_frame(lines, at)
        if step is not None:
            frames.append(step[0])
            at += step[1]
        elif NON_FRAME_LINE.match(lines[at]) or is_blank_between_frames(lines, at):
            at += 1
        else:
            break
    if panic:
        message = panic[1] or (lines[start + 1].strip() if start + 1 < len(lines) else "")
        location = build_frame(panic[2], "")
        own = (
            location if location.is_own else next((frame for frame in frames if frame.is_own), None)
        )
        return Trace((RaisedError("panic", message, own),), start, at)
    if _PYTHON_START.match(lines[start]) or PYTHON_FRAME.match(lines[start]):
        return _parse_python_trace(lines, start, at, frames)
    own = next((frame for frame in frames if frame.is_own), None)
    ruby = RUBY_FRAME.match(lines[start])
    if ruby and ruby[3]:
        typed_message = _RUBY_RAISED.match(ruby[3])
        raised = (
            RaisedError(_shorten_name(typed_message[2]), typed_message[1], own)
            if typed_message
            else RaisedError("", ruby[3], own)
        )
        return Trace((raised,), start, at)
    return _parse_trace_below_exceptions(lines, start, at, floor, own)


def _parse_python_trace(
    lines: Sequence[str], start: int, end: int, frames: Sequence[Frame]
) -> Trace:
    """Parse a trace whose exception is below the frames, the innermost frame last."""
    own = next((frame for frame in reversed(frames) if frame.is_own), None)
    if end < len(lines) and (raised := _parse_typed_error(lines[end].lstrip(" |+"), _ANY_TYPED)):
        return Trace((RaisedError(raised.type, raised.message, own),), start, end + 1)
    return Trace((RaisedError("", "", own),), start, end)


def _parse_trace_below_exceptions(
    lines: Sequence[str], start: int, end: int, floor: int, own: Frame | None
) -> Trace:
    """Parse a trace whose exceptions are above the frames."""
    above = start
    chain: list[RaisedError] = []
    for at in range(start - 1, max(floor, start - _MAX_HEADER_LINES) - 1, -1):
        line = lines[at].strip()
        if not line and chain:
            break
        raised = _parse_line_above_frames(line)
        if raised is not None:
            chain.append(raised)
            above = at
        elif chain and not NON_FRAME_LINE.match(line):
            break
    if not chain:
        before = [
            at
            for at in range(max(floor, start - 2), start)
            if lines[at].strip() and not NON_FRAME_LINE.match(lines[at])
        ]
        above = before[-1] if before else start
        chain = [RaisedError("", lines[above].strip() if before else "")]
    message, location = _split_php_location(chain[0].message)
    if not message and above + 1 < start:
        message = lines[above + 1].strip()
    own = location if location is not None and location.is_own else own
    root = RaisedError(chain[0].type, message, own)
    if above - 4 >= floor and _NODE_LOCATION.match(lines[above - 4]):
        above -= 4
    return Trace((*reversed(chain[1:]), root), above, end)


def _parse_line_above_frames(line: str) -> RaisedError | None:
    """Return the exception in a line above frames; None if the line has no exception."""
    raised_match = _RAILS_RAISED.match(line) or _LARAVEL_RAISED.match(line)
    if raised_match:
        return RaisedError(_shorten_name(raised_match[1]), raised_match[2].strip())
    served = _GO_SERVED.match(line)
    if served:
        return RaisedError("panic", served[1])
    bare = _strip_words_before_type(line)
    typed = _parse_typed_error(bare, _TYPED)
    if typed is not None or bare != line:
        return typed or _parse_typed_error(bare, _ANY_TYPED)
    general = _parse_error_line(line)
    return None if general is None else RaisedError(general.type, general.message)


def _strip_words_before_type(line: str) -> str:
    while match := _BEFORE_TYPE.match(line):
        line = line[match.end() :]
    return line


def _parse_typed_error(line: str, pattern: re.Pattern[str]) -> RaisedError | None:
    match = pattern.match(_strip_words_before_type(line.strip()))
    if match is None:
        return None
    code = f" [{match['code']}]" if match["code"] else ""
    message = (match["message"] or "").strip(" {")
    # Logback prints this for a missing message.
    return RaisedError(_shorten_name(match["type"]) + code, "" if message == "null" else message)


def _split_php_location(message: str) -> tuple[str, Frame | None]:
    """Split a PHP message into the actual message and the file that PHP appends."""
    location = _PHP_LOCATION.search(message)
    return (
        (message, None)
        if location is None
        else (message[: location.start()], build_frame(location[1], ""))
    )


def _add_trace(lines: Sequence[str], traces: list[Trace], trace: Trace) -> list[Trace]:
    """Return the traces with one more; merged with the last trace if both are of one failure."""
    if not traces:
        return [trace]
    last = traces[-1]
    between = " ".join(line.strip() for line in lines[last.end_line : trace.first_line])
    if _CAUSED_TEXT in between:
        chain = (*trace.chain, *last.chain)
    elif _HANDLED_TEXT in between:
        chain = trace.chain
    elif any(RUBY_CALLER.match(line) for line in lines[trace.first_line : trace.end_line]):
        chain = last.chain
    elif not between and re.match(r"\s*(?:Caused by:|\[cause\]:)", lines[trace.first_line]):
        chain = (*last.chain, *trace.chain)
    else:
        return [*traces, trace]
    return [*traces[:-1], Trace(chain, last.first_line, trace.end_line)]


def _shorten_name(name: str) -> str:
    return re.split(r"\.|::|\\+|/", name)[-1]
