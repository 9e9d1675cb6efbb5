"""Parses the frames of stack traces.

The supported formats are Python, JavaScript, Java and Kotlin, Go, Rust, PHP, Ruby, .NET and native
debuggers. The location of a frame excludes folders and line numbers, which differ by machine and by
commit.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

MAX_LINE_CHARACTERS: Final = 1_000
"""Maximum number of parsed characters of a line."""

# None of these expressions repeats a group that can be empty, so backtracking is limited.
TIME: Final = r"\[?\d{4}[-/]\d\d[-/]\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[ ]?[+-]\d\d:?\d\d)?\]?"
_LEVEL = r"\[?(?:TRACE|DEBUG|INFO|NOTICE|WARN(?:ING)?|ERROR|ERR|SEVERE|CRITICAL|FATAL)\]?"
_PREFIX = re.compile(
    rf"""(?:[\w.-]{{0,60}}[-_]\d+\ +\|\ )?  # Compose
      (?:E\ {{2,}}(?=\S))?  # pytest
      (?:[A-Z][a-z]{{2}}\ [\ \d]\d\ \d\d:\d\d:\d\d\ \S{{1,80}}\ [^\s:\[]{{1,80}}(?:\[\d+\])?:\ )?
      (?:\d\d-\d\d\ \d\d:\d\d:\d\d\.\d+\ +\d+\ +\d+\ [A-Z]\ [\w.]{{1,60}}\ *:\ )?  # Android
      (?:{TIME}[\ :]?(?:std(?:out|err)\ [FP]\ )?)?  # Kubernetes
      (?:[\ :]*{_LEVEL}[\ :-]+(?=\S))?""",
    re.VERBOSE,
)
"""Prefixes that container runtimes, loggers and pytest add to a line."""
_ESCAPED = re.compile(r"\\n(?:\\t| +|#0 |thread )(?:at |File |\S)")
PYTHON_FRAME = re.compile(r"""(\s*)(?:\| +)?File "([^"]+)", line \d+(?:, in (.+))?$""")
_PYTEST = re.compile(r"([^\s:]+\.py):\d+: in (\S+)$")
_JAVA = re.compile(
    r"\s*at (?:[\w.@-]*/)*([\w$.<>]+\.[\w$<>-]+)"
    r"\(([^()\s:]+(?::\d+)?|Native Method|Unknown Source)\)"
)
_JAVASCRIPT = re.compile(
    r"\s*at (?:async )?(?:(.+?) \()?((?:\w+:)?[^()\s:][^()\n]*?):\d+:\d+\)?(?: \{|,)?$"
)
_JAVASCRIPT_BUILT_IN = re.compile(r"\s*at (?:async )?(.+?) \((?:<anonymous>|native|index \d+)\)$")
_FIREFOX = re.compile(r"([^\s@]*)@((?:https?|file|webpack|moz)[^\s]*?):\d+:\d+$")
_DOTNET = re.compile(r"\s*(?:at|bei|à) ([\w.<>$`+|\[\],]+)\(([^)]*)\)(?: in (.+):line \d+)?\s*$")
_GO_FILE = re.compile(r"\s+(\S*?[\w.-]+\.(?:go|s)):\d+(?: \+0x[0-9a-f]+)?$")
_GO_FUNCTION = re.compile(r"(?:created by )?(\S+?)(?:\([^()]*\)| in goroutine \d+)?$")
_RUST = re.compile(r"\s*\d+:\s+(?:0x[0-9a-f]+ - )?([^\s(][^(\n]*)$")
_RUST_AT = re.compile(r"\s+at (\S+?):\d+(?::\d+)?$")
_PHP = re.compile(r"#\d+ (?:([^\s(][^(\n]*)\(\d+\): (.+)|\{main\}|\[internal function\]: .*)$")
_NATIVE = re.compile(
    r"\s*#\d+ +(?:0x[0-9a-f]+ in )?([\w:~<>*&, ]+?) ?(?:\(.*\))? (?:at )?([^\s:()]+):\d+(?::\d+)?$"
)
RUBY_FRAME = re.compile(
    r"\s*(?:\d+: )?(?:from |# )?([^\s:][^:\n]*):\d+:in [`']([^']+)'(?:: (.+))?$"
)
RUBY_CALLER = re.compile(r"\s*from \S+:\d+:in ")
NON_FRAME_LINE = re.compile(
    r"""\s*(?:
        \.\.\.\ \d+\ (?:more|common\ frames\ omitted)
      | ---\ End\ of\ .*---
      | goroutine\ \d+\ .*: | exit\ status\ \d+ | \[signal\ .*\]
      | (?:stack\ backtrace|stack\ trace|backtrace|call\ stack|\[stacktrace\]):?
      | \[?previous\ exception\]?
      | note:\ (?:run\ with|some\ details) .*
      | thrown\ in\ .* | Node\.js\ v\d.*
      | \{?main\}?
      | [\s^~|+-]*[\^~][\s^~|+-]*
    )\s*$""",
    re.VERBOSE | re.IGNORECASE,
)
"""Lines within a trace that are not frames."""
_LIBRARY_FILE = re.compile(
    r"""(?:^|[/\\])(?:site-packages|dist-packages|node_modules|vendor|gems|toolchains|\.cargo|rustc
      |pkg[/\\]mod|lib[/\\]python\d[\d.]*|[Pp]ython\d+[/\\][Ll]ib|lib[/\\]ruby|libexec)(?:[/\\]|$)
      |^(?:node:|internal/|webpack/|<|/usr/lib|/usr/local/go/|/usr/include|/lib/|/build/glibc
      |\[|native$|kernel:|bootstrap:)|[/\\]go[/\\]src[/\\]""",
    re.VERBOSE,
)
_LIBRARY_FUNCTION = re.compile(
    r"""(?:java|javax|jakarta|jdk|sun|com\.sun|kotlin|kotlinx|scala|groovy|clojure|android|androidx
      |dalvik|org\.(?:springframework|apache|hibernate|junit|gradle|eclipse|jboss|postgresql|mockito
      |testng|slf4j|codehaus|scalatest|jetbrains)|io\.(?:netty|grpc|micronaut|quarkus|vertx|ktor
      |micrometer|reactivex)|reactor|okhttp3|retrofit2|com\.(?:google|fasterxml|zaxxer|mysql|intellij)
      |ch\.qos|net\.bytebuddy|System|Microsoft|Xunit|NUnit|Castle|Newtonsoft|Npgsql
      |runtime|testing|reflect|syscall|net/http|database/sql|encoding/\w+)[.]
      |<?&?(?:std|core|alloc|tokio|futures\w*|backtrace|panic_unwind|test|rayon)(?:::|\s+as\s)
      |__?(?:rust|libc|start|scrt|asan|GI_)|rust_begin_unwind|_start$|start_thread$""",
    re.VERBOSE,
)
_NUMBER = re.compile(r"\d+")


@dataclass(frozen=True, slots=True)
class Frame:
    """A frame of a stack trace.

    Attributes:
        location: PARENT_FOLDER/FILE:FUNCTION, or PACKAGE.FUNCTION:FILE if the trace has the
            package.
        is_own: whether the frame is in the project's own code, not in a library or a runtime.
    """

    file: str
    function: str
    location: str
    is_own: bool

    @property
    def short_location(self) -> str:
        """Return the file and the function without the folder."""
        return f"{self.file}:{self.function}"


_RUNTIME = Frame("", "", "", is_own=False)
"""A frame of a runtime, without a location."""


def split_lines(text: str) -> list[str]:
    """Return the lines of a text; unescape a trace that was escaped for JSON."""
    if _ESCAPED.search(text):
        text = text.replace("\\r", "").replace("\\n", "\n").replace("\\t", "\t")
    return text.splitlines()


def strip_log_prefix(line: str) -> str:
    """Return a line without the time, level or name that a logger put before it."""
    match = _PREFIX.match(line)
    return line[match.end() :] if match else line


def is_blank_between_frames(lines: Sequence[str], at: int) -> bool:
    """Return whether a line is a blank line between frames."""
    if lines[at].strip():
        return False
    following = next(
        (number for number in range(at + 1, min(at + 3, len(lines))) if lines[number].strip()), 0
    )
    if not following:
        return False
    is_frame = parse_frame(lines, following) is not None
    return is_frame or NON_FRAME_LINE.match(lines[following]) is not None


def parse_frame(lines: Sequence[str], at: int) -> tuple[Frame, int] | None:
    """Return the frame that starts at a line, and its number of lines; None if none starts."""
    line = lines[at]
    if python := PYTHON_FRAME.match(line):
        return build_frame(python[2], python[3] or ""), _count_python_lines(
            lines, at, _measure_indent(line)
        )
    following = lines[at + 1] if at + 1 < len(lines) else ""
    if (go := _GO_FILE.match(following)) and (function := _GO_FUNCTION.match(line.strip())):
        return build_frame(go[1], function[1].rpartition("/")[2], function[1]), 2
    if (rust := _RUST.match(line)) and (_RUST_AT.match(following) or "::" in rust[1]):
        location = _RUST_AT.match(following)
        name = re.sub(r"::h[0-9a-f]{16}$", "", rust[1].strip())
        return build_frame(location[1] if location else "", name), 2 if location else 1
    frame = _parse_frame(line)
    return None if frame is None else (frame, 1)


def _count_python_lines(lines: Sequence[str], at: int, indent: int) -> int:
    """Return the number of lines of a Python frame, including its indented source."""
    end = at + 1
    while end < len(lines) and lines[end].strip():
        if _measure_indent(lines[end]) <= indent or PYTHON_FRAME.match(lines[end]):
            break
        end += 1
    return end - at


def _measure_indent(line: str) -> int:
    """Return the indent of a line, including the bars of an exception group."""
    return len(line) - len(line.lstrip(" |"))


def _parse_frame(line: str) -> Frame | None:
    """Return the frame in a line; None if the line is not a frame."""
    for pattern, read in _READERS:
        if match := pattern.match(line):
            return read(match)
    return None


def build_frame(file: str, function: str, qualified: str | None = None) -> Frame:
    """Return a frame with a location that is equal on every machine and in every build.

    Args:
        qualified: function name with its package, to recognize libraries.
    """
    is_library = _LIBRARY_FILE.search(file) or _LIBRARY_FUNCTION.match(qualified or function)
    # Builds add a hash of the content to file names.
    path = re.sub(r"(?<=[.-])(?=[A-Za-z]*\d)[0-9A-Za-z]{6,}(?=\.)", "0", file.partition("?")[0])
    folder, name = ["", *re.split(r"[/\\]", path)][-2:]
    function = _NUMBER.sub("0", function.strip())
    around = f"{folder}/{name}:{function}" if folder not in {"", "."} else f"{name}:{function}"
    location = around if qualified is None else f"{qualified}:{name}"
    return Frame(name, function, _NUMBER.sub("0", location), is_own=not is_library)


def _split_qualified_name(qualified: str) -> str:
    """Return the last two parts of a qualified name: the class and the method."""
    # The C# compiler creates a class for each asynchronous method; this restores the method name.
    qualified = re.sub(r"\.<(\w+)>d__\d+\.MoveNext$", r".\1", qualified)
    return ".".join(qualified.split(".")[-2:])


def _build_script_frame(match: re.Match[str]) -> Frame:
    name = re.sub(r"^(?:new |Object\.|async )+|<anonymous>| \[as [^\]]+\]", "", match[1] or "")
    return build_frame(match[2], name.strip("."))


def _build_dotnet_frame(match: re.Match[str]) -> Frame:
    # Only builds with symbols show the file.
    return build_frame("", _split_qualified_name(match[1]), match[1])


_READERS: tuple[tuple[re.Pattern[str], Callable[[re.Match[str]], Frame]], ...] = (
    (_JAVA, lambda m: build_frame(m[2].partition(":")[0], _split_qualified_name(m[1]), m[1])),
    (_JAVASCRIPT, _build_script_frame),
    (_FIREFOX, _build_script_frame),
    (_JAVASCRIPT_BUILT_IN, lambda _: _RUNTIME),
    (_DOTNET, _build_dotnet_frame),
    # PHP shows the called function, not the surrounding one.
    (_PHP, lambda m: build_frame(m[1], "") if m[1] else _RUNTIME),
    (_PYTEST, lambda m: build_frame(m[1], m[2])),
    (RUBY_FRAME, lambda m: build_frame(m[1], re.split(r"[#. ]", m[2])[-1])),
    (_NATIVE, lambda m: build_frame(m[2], m[1])),
)
"""Readers of one-line frames, in the order in which they are tried."""
