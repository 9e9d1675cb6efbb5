"""Credentials found by their names: assignments, markup and tables; sentences are in prose.

An assignment is the name of a credential, a separator, and a value that is not a placeholder, a
type or an expression. A value of letters only is a password if it is neither code nor a word about
passwords. In markup, elements, attributes, calls or cells separate a value from its name.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from rag_assets.privacy.secrets.names import ANCHORS, Name, find_names
from rag_assets.privacy.secrets.placeholders import is_placeholder
from rag_assets.privacy.secrets.prose import find_stated
from rag_assets.privacy.secrets.rules import Anchor, Rule
from rag_assets.privacy.secrets.spans import SecretSpan
from rag_assets.privacy.secrets.values import (
    ValueKind,
    is_alphabetic_password,
    is_bare_password,
    is_cell_secret,
    is_generated,
    is_phrase,
    is_pin,
    is_secret_value,
    is_type_name,
)

_RULE = "assigned-secret"
_REACH = 420
_NEAR_CHARACTERS = 400

_CLOSING = r"(?:\\?[\"'`]|&quot;|[\])}*_~”’»]){0,6}"
_NOTE = r"(?:[ \t]?(?:\([^()\n]{1,48}\)|\[[^\[\]\n]{1,48}\]))?"
_TYPE = (
    r"(?:[ \t]*:[ \t]*(?:&(?:'\w+[ \t])?)?[A-Za-z_][\w.]*(?:\[[\w, .|]*\]|<[\w, .|]*>)?(?:[ \t]?\|[ \t]?\w+)*\??(?=[ \t]+=[^=>])"
    r"|[ \t]+(?:string|str|\[\]byte|String|As[ \t]+String|varchar)(?=[ \t]*=))?"
)
_OWNER = (
    r"(?:[ \t](?:for|of|to|on|at|für|fuer|von|vom|des|der|del|de|du|da|do|para|pour|per|voor|in|im)"
    r"[ \t][^\n:=|\"'`]{1,48}?)?"
)
_SEPARATOR = (
    r"[ \t]{0,16}(?:</?(?:b|i|strong|em|code)>[ \t]?){0,3}"
    r"(?::=|=>|->|<-|→|➡️?|⇒|👉|➜|»|>{2,3}|[!=]?={1,2}|::|:|：|＝|\?=|~=)(?:[*_~`]{1,3}(?=[ \t]))?[ \t]{0,16}"
    r"(?:</?(?:b|i|strong|em|code|kbd|tt|samp|mark|font|span|td|dd)(?:[ \t][^<>\r\n]{0,80})?>[ \t]?){0,3}"
)
_WRAPPED = (
    r"(?:(?:new[ \t]+)?(?:String(?:::from|::new)?|SecretStr|Secret|Buffer\.from|MD5|SHA[12]|sha256|PASSWORD|crypt|bytes|strdup"
    r"|Some|Just|make_password|hash_password|generate_password_hash|encode|secure|N)[ \t]?\(?[ \t]*(?=[\"']))?"
)
_VALUE = (
    r"(?:"
    r"\"\"\"(?P<triple>[^\"\r\n]{3,256})\"\"\"|'''(?P<triple_single>[^'\r\n]{3,256})'''|"
    r"[bBrRuUfF@]{0,2}\"(?P<double>(?:[^\"\\\r\n]|\\[^\r\n]){3,256})\""
    r"|[bBrRuUfF@]{0,2}'(?P<single>(?:[^'\\\r\n]|\\[^\r\n]|''){3,256})'"
    r"|\\\"(?P<escaped>[^\"\\\r\n]{3,256})\\\""
    r"|&quot;(?P<entity>[^&\r\n]{3,256})&quot;"
    r"|`(?P<code>[^`\r\n]{3,256})`"
    r"|[“„«‹‘‚](?P<curly>[^”“»›’\r\n]{3,256})[”“»›’]"
    r"|(?P<mark>\*\*|__|\*|_|~~)(?P<emphasis>[^\s*_~][^\s]{1,254}?)(?P=mark)(?=[\s.,;:!?)]|$)"
    r"|(?P<bare>(?:[^\s\"'`,;&<>|“”„]|[,;&|](?=[^\s,;&|])(?![\w .-]{1,40}[=:]|\w{1,6};)"
    r"|[<>](?![/\w])|['\"](?=[^\s,;:.)\]}'\"=])){3,256})"
    r")"
)
_ASSIGNED = re.compile(
    _CLOSING
    + _NOTE
    + _OWNER
    + _CLOSING
    + _TYPE
    + _SEPARATOR
    + r"(?:!!\w+[ \t]+)?"
    + _WRAPPED
    + _VALUE
)
_ON_NEXT_LINE = re.compile(
    _CLOSING
    + r"[ \t]?:[*_]{0,2}[ \t]*(?:[>|][+-]?)?[ \t]*\r?\n(?:[ \t>]*(?:```\w*)?\r?\n){0,2}[ \t>]*[`\"']?(?P<bare>[^\s\"'`]{6,128})[`\"']?[ \t]*(?=\r?\n|$)"
)
_LISTED = re.compile(
    _CLOSING + r"[ \t]*[:=][ \t]*(?:\[(?P<row>[^\[\]\r\n]{3,400})\]"
    r"|(?P<lines>(?:\r?\n[ \t]*-[ \t]+[\"']?[^\s\"':=]{3,256}[\"']?[ \t]*(?=[\r\n]|$)){1,100}))"
)
_ITEM = re.compile(r"[\"'](?P<quoted>[^\"'\r\n]{3,256})[\"']|(?P<bare>[^\s,\"'\[\]]{3,256})")
_NESTED = re.compile(
    _CLOSING + r"[ \t]*[:=][ \t]*\{?\s{0,20}[\"']?(?i:value|default|data)[\"']?[ \t]*[:=][ \t]*"
    r"(?:\"(?P<double>[^\"\r\n]{3,256})\"|'(?P<single>[^'\r\n]{3,256})'|(?P<bare>[^\s\"',{}]{3,256}))"
)
_PHRASED = re.compile(
    _CLOSING
    + _NOTE
    + _OWNER
    + _CLOSING
    + _SEPARATOR
    + r"(?P<bare>[^\W\d_]{2,20}(?: [^\W\d_]{2,20}){3,7})[ \t]*(?=[\r\n<|]|$)"
)
_PAIR = re.compile(
    _CLOSING + _NOTE + r"(?:[ \t]{0,8}[:=][ \t*`\"']{0,6}[\w.@+-]{1,64}[`\"']?[ \t]?[/|:][ \t]?"
    r"|(?:[ \t](?:are|sind|is|son|sont))?[ \t*`\"']{1,6}[\w.@+-]{1,64}[`\"']?[ \t]?/[ \t]?)"
    r"[`\"']?(?P<bare>[^\s\"'`,;<>|]{6,128})"
)
_CLOCK = re.compile(r"\d\d(?::\d\d)?(?:[.:]\d+)?(?:Z|[+-]\d\d)")
_LINE_END = re.compile(r"[.*_`\"')]*[ \t]*(?:[\r\n]|$)")
_COMMAND = re.compile(r"(?:^|[\n;&|>$`])[ \t]*(?:ENV|setx|SET|set|RUN setx)[ \t]+[\w.]+\Z")
_DIRECTIVES = frozenset({"requirepass", "masterauth"})
_SET = re.compile(r"[ \t]{1,8}[\"']?(?P<bare>[^\s\"'`=:]{4,256})[\"']?[ \t]*(?=[\r\n]|$)")
_ENVIRONMENT = re.compile(r"(?:(?:export|set|ENV|ARG|-e|--env|env)[ \t]+)?[A-Z][A-Z0-9_]+\Z")
_FOLLOWED = re.compile(
    r"[&;|)\]}]|,[ \t]?[\w.-]+[ \t]?[=:]|,\w+=|;?[ \t]?[\w.-]+(?: [\w.-]+)?=\S|</?[A-Za-z]|;$"
)
_LINE_CODE = re.compile(
    r"[;{(\\,]\s*$|^\s*(?:def|class|return|import|from|if|elif|else|for|while|fn|func|let|const|var"
    r"|public|private|protected|static|final|type|interface|struct|with|try|except|await|self\.)\b|\)\s*$"
)
_TYPED = re.compile(
    r"[:=]\s*[\"']?(?:str|string|int|integer|number|bool|boolean|float|bytes|object|any|uuid|date"
    r"|optional|required|text|varchar\S*|secretstr)\b",
    re.IGNORECASE,
)


def find_assigned(text: str, name: Name) -> Iterator[SecretSpan]:
    """Find the value assigned to a name, if it is a credential."""
    value = _find_value(text, name)
    if value is not None:
        yield value
    else:
        yield from _find_listed(text, name)


def _find_listed(text: str, name: Name) -> Iterator[SecretSpan]:
    """Find the credentials in a list after a name: `tokens: [X, Y]`, or lines with a dash."""
    match = _LISTED.match(text, name.end, name.end + _REACH)
    if match is None:
        return
    for item in _ITEM.finditer(text, *match.span(match.lastgroup or 0)):
        quoted = item["quoted"] is not None
        value = item[0].strip("\"'")
        if value != "-" and is_secret_value(name.kind, value, is_quoted=quoted):
            start = item.start(item.lastgroup or 0)
            yield SecretSpan(start, start + len(value), _RULE)


def _find_value(text: str, name: Name) -> SecretSpan | None:
    if name.kind is ValueKind.PAIR:
        return _find_paired(text, name)
    whole = _find_phrase(text, name) or _find_in_directive(text, name)
    if whole is not None:
        return whole
    for pattern in (_NESTED, _ASSIGNED, _ON_NEXT_LINE):
        match = pattern.match(text, name.end, name.end + _REACH)
        if match is not None:
            return _accept(text, name, match)
    return None


def _find_paired(text: str, name: Name) -> SecretSpan | None:
    """Find the password X after a user: `Login: admin / X`."""
    pair = _PAIR.match(text, name.end, name.end + _REACH) if name.text.isalpha() else None
    if pair is None or not _is_paired(text, pair):
        return None
    return SecretSpan(pair.start("bare"), _trim_end(text, *pair.span("bare")), _RULE)


def _find_phrase(text: str, name: Name) -> SecretSpan | None:
    """Find a passphrase of several plain words after a name; it must end with the line."""
    match = _PHRASED.match(text, name.end, name.end + _REACH)
    if match is None or name.kind is not ValueKind.PASSWORD or not is_phrase(match["bare"]):
        return None
    return SecretSpan(*match.span("bare"), _RULE)


def _find_in_directive(text: str, name: Name) -> SecretSpan | None:
    """Find the value after a space in a directive: `ENV DB_PASSWORD X`, `requirepass X`."""
    known = name.text.lower() in _DIRECTIVES
    if not known and not _COMMAND.search(text, max(0, name.start - 20), name.end):
        return None
    match = _SET.match(text, name.end, name.end + _REACH)
    if match is None or is_placeholder(match["bare"]):
        return None
    if name.kind is ValueKind.RANDOM and not is_secret_value(
        name.kind, match["bare"], is_quoted=False
    ):
        return None
    return SecretSpan(*match.span("bare"), _RULE)


def _is_paired(text: str, pair: re.Match[str]) -> bool:
    value = pair["bare"]
    if is_placeholder(value) or "/" in value or _CLOCK.match(value):
        return False
    if is_bare_password(value):
        return True
    return is_alphabetic_password(value) and _LINE_END.match(text, pair.end()) is not None


def _accept(text: str, name: Name, match: re.Match[str]) -> SecretSpan | None:
    group = match.lastgroup or ""
    start, end = match.span(group)
    if group in {"bare", "emphasis"}:
        end = _trim_end(text, start, end)
    value = text[start:end]
    if text.startswith("...", end):
        return None
    if not _is_credential(text, name, value, group, match):
        return None
    return SecretSpan(start, end, _RULE)


def _is_credential(text: str, name: Name, value: str, group: str, match: re.Match[str]) -> bool:
    if name.kind is ValueKind.PIN:
        return is_pin(value)
    expected = name.kind if name.kind in {ValueKind.PASSWORD, ValueKind.RANDOM} else ValueKind.KEY
    quoted = group not in {"bare"}
    if quoted and _is_label(text, name, value):
        return False
    if is_secret_value(expected, value, is_quoted=quoted):
        return True
    if name.kind is ValueKind.PASSWORD and not quoted:
        return is_alphabetic_password(value) and _may_be_password_of_letters(
            text, name, value, match
        )
    return False


def _is_label(text: str, name: Name, value: str) -> bool:
    """Return whether a value is a translated label, as in `"Repeat Password": "Heslo znovu"`."""
    if (
        any(c.isdigit() or c in "!@#$%^&*" for c in value)
        or text[name.end : name.end + 1] not in "\"'"
    ):
        return False
    begin = max(text.rfind('"', 0, name.end), text.rfind("'", 0, name.end)) + 1
    key = text[begin : name.end]
    return " " in key or (key[:1].isupper() and not key.isupper() and "_" not in key)


def _may_be_password_of_letters(text: str, name: Name, value: str, match: re.Match[str]) -> bool:
    """Return whether a value of letters only may be a password on this line.

    The rest of the line must be empty, and the line must not be code.
    """
    begin = text.rfind("\n", 0, name.start) + 1
    end = text.find("\n", match.end())
    line = text[begin : end if end >= 0 else len(text)]
    rest = text[match.end() : begin + len(line)].strip(" \t\r*_`.\"'|/->")
    if name.start and text[name.start - 1] == ";":
        return True
    if rest and not _FOLLOWED.match(rest) and not _ENVIRONMENT.search(text, begin, name.end):
        return False
    if _ENVIRONMENT.search(text, begin, name.end):
        return not is_type_name(value)
    if (
        is_type_name(value)
        and "=" not in match[0]
        and _TYPED.search(_get_paragraph(text, begin, end))
    ):
        return False
    return not _is_code(text, begin, end, line, value)


def _is_code(text: str, begin: int, end: int, line: str, value: str) -> bool:
    """Return whether a line is code, by its form, its neighbours, or a variable as its value."""
    near = _get_paragraph(text, begin, end)
    if _LINE_CODE.search(line) or _TYPED.search(near):
        return True
    if any(_LINE_CODE.search(other) for other in near.splitlines()):
        return True
    others = near.replace(line, "", 1)
    return re.search(rf"\b{re.escape(value)}\b", others) is not None


def _get_paragraph(text: str, begin: int, end: int) -> str:
    """Return the paragraph around a line: the text between the previous and the next blank line."""
    low, high = (
        max(0, begin - _NEAR_CHARACTERS),
        (end if end >= 0 else len(text)) + _NEAR_CHARACTERS,
    )
    first = text.rfind("\n\n", low, begin)
    last = text.find("\n\n", begin, high)
    return text[first + 2 if first >= 0 else low : last if last >= 0 else min(high, len(text))]


def _trim_end(text: str, start: int, end: int) -> int:
    """Return the end of an unquoted value without punctuation, closing brackets and emphasis."""
    while end > start + 1:
        last = text[end - 1]
        opened = {")": "(", "]": "[", "}": "{"}.get(last)
        if last in ".:" or (opened is not None and opened not in text[start:end]):
            end -= 1
        elif last in "*_~" and text[end - 2] == last:
            end -= 2
        elif last in "*_~" and start and text[start - 1] == last:
            end -= 1
        else:
            break
    return end


_MARKUP_REACH = 400
_QUOTED = r"(?:\"(?P<double>[^\"\r\n]{3,256})\"|'(?P<single>[^'\r\n]{3,256})'|`(?P<tick>[^`\r\n]{3,256})`)"

_ELEMENT = re.compile(
    # <password>X</password>, <key>password</key><string>X</string>, <td>Password</td><td>X</td>
    r"[\"']?(?:\s[^<>\n]{0,120})?>\s{0,40}(?:(?:</?[A-Za-z][\w:.-]*(?:\s[^<>]{0,120})?>\s{0,40}){0,4})"
    r"(?:<!\[CDATA\[)?(?P<text>[^<>\r\n]{3,256}?)(?:\]\]>)?\s{0,40}</"
)
_LABELLED = re.compile(
    # <td>Password:</td><td>X</td>, <dt>Password</dt><dd>X</dd>, <b>Password</b>: X
    r"[ \t]?:?[ \t]?(?:\([^()<>\n]{1,40}\))?[ \t]?:?</[A-Za-z][\w:-]*>[ \t]?:?\s{0,40}"
    r"(?:</?[A-Za-z][\w:.-]*(?:\s[^<>]{0,120})?>\s{0,40}){0,5}(?P<text>[^<>\r\n]{3,256}?)\s{0,40}</"
)
_ATTRIBUTE = re.compile(
    # name="password" value="X", key: "DB_PASSWORD", "value": "X", - name: X newline value: Y
    r"[\"'`]?[ \t]{0,4}(?:,|/?>|\{)?\s{0,60}(?:type[ \t]*=[ \t]*\w+\s{1,40})?(?:<)?[\"'`]?(?i:value|val|content|default|string)[\"'`]?"
    r"[ \t]{0,4}[:=>][ \t]{0,4}(?:"
    + _QUOTED
    + r"|(?P<bare>[^\W\d_]{2,20}(?: [^\W\d_]{2,20}){3,7}(?=[ \t]*(?:[\r\n]|$))|[^\s\"'`,;<>|{}]{3,256}))"
)
_SECOND = re.compile(
    # env('DB_PASSWORD', 'X'), define("DB_PASSWORD", "X"), os.environ.get("X", "Y")
    r"[\"'`][ \t]{0,2},[ \t]{0,4}" + _QUOTED
)
_GETTER = re.compile(
    r"(?i:env|define|fetch|get|config|property|secret|default|set|put|opt|add|append|setting|param|variable|value|fill|type)"
    r"\w*[ \t]{0,2}\([ \t]{0,2}[\"'`]\Z"
)
_CALL = re.compile(
    # setPassword("X"), getenv("PASSWORD") or "X", ENV["PASSWORD"] || "X", ENV.fetch("PASSWORD") { "X" }
    r"(?:[\"'`]?[ \t]{0,2}[\])]?[ \t]{0,2}(?:\|\||\?\?|or|\?:|\{)[ \t]{0,4}|\([ \t]{0,4})" + _QUOTED
)
_DEFAULT = re.compile(r"(?::[-=?]?|:=)(?P<text>[^\s{}$\"'`]{3,256})\}")
_LABEL_END = re.compile(r"[*_`'}]{0,3}(?::?[ \t]?\([^()|\n]{1,40}\))?:?[*_`]{0,3}")
_PARTING = re.compile(r"[ \t]*\|{1,2}|[ ]?\t|[ ]{3,40}(?=[^ |])")
_CELL_MARKS = " \t\r*_`'"
_MAX_ROW_CHARACTERS = 400
_MAX_ROWS = 1_000
_DELIMITER = re.compile(r"\|\||\^|!!|\||(?<=^)!")
_FIRST_IN_ELEMENT = re.compile(r"(?<!/)>\s{0,20}(?:[\w-]{1,20}[ \t]){0,3}\Z")
_FIRST_CELL = re.compile(r"(?:^|\n)[ \t>]*\|?[ \t]*[*_`]{0,3}(?:[\w-]+[ \t]){0,2}\Z")
_EXPANSION = re.compile(r"\$\{[\w.-]*\Z")
_SQL = re.compile(
    r"[ \t]{1,4}(?:(?i:=|to|by|values?)[ \t]{1,4})?(?:'(?P<single>[^'\r\n]{3,256})'|\"(?P<double>[^\"\r\n]{3,256})\")"
)
_SQL_WORDS = frozenset({"password", "passwd"})
_TEXTS = ("text", "bare", "double", "single", "tick")


def find_in_markup(text: str, name: Name) -> Iterator[SecretSpan]:
    """Find the value of a name in markup, a call or a table."""
    limit = name.end + _MARKUP_REACH
    for pattern in _select_patterns(text, name):
        match = pattern.match(text, name.end, limit)
        span = _accept_in_markup(name, match, pattern) if match is not None else None
        if span is not None:
            yield span
            break
    cell = _find_in_row(text, name)
    if cell is not None:
        yield cell
    yield from _find_in_column(text, name)
    if _EXPANSION.search(text, max(0, name.start - 60), name.end):
        match = _DEFAULT.match(text, name.end, limit)
        span = _accept_in_markup(name, match, _DEFAULT) if match is not None else None
        if span is not None:
            yield span


def _find_in_row(text: str, name: Name) -> SecretSpan | None:
    """Find the value after a label that starts a row of a plain-text table."""
    label = _LABEL_END.match(text, name.end)
    parting = _PARTING.match(text, label.end() if label else name.end)
    if parting is None or not _FIRST_CELL.search(text, max(0, name.start - 80), name.start):
        return None
    end = text.find("\n", parting.end(), parting.end() + _MAX_ROW_CHARACTERS)
    row = text[parting.end() : end if end >= 0 else parting.end() + _MAX_ROW_CHARACTERS]
    aligned = "|" not in parting[0] and "\t" not in parting[0]
    cells = [row] if aligned else re.split(r"\||\t", row)
    value = cells[0].strip(_CELL_MARKS)
    described = any(cell.strip(_CELL_MARKS) for cell in cells[1:])
    if aligned and (value.endswith(",") or " " in value or ":" in text[name.end : parting.start()]):
        return None
    if name.kind is ValueKind.PAIR or not is_cell_secret(name.kind, value, is_described=described):
        return None
    start = parting.end() + row.index(value)
    return SecretSpan(start, start + len(value), _RULE)


def _find_in_column(text: str, name: Name) -> Iterator[SecretSpan]:
    """Find the cells below a name in the first row of a table, in wiki markup and plain text."""
    low = max(0, name.start - _MAX_ROW_CHARACTERS)
    begin = text.rfind("\n", low, name.start) + 1 or low
    if begin and text[begin - 1] != "\n":
        return
    head = text[begin : name.start].lstrip(" \t>")
    if not head.startswith(("|", "^", "!")) or text[max(0, begin - 2) : begin - 1] == "|":
        return
    column = len(_DELIMITER.findall(head)) - 1
    at = text.find("\n", name.end, name.end + _MAX_ROW_CHARACTERS)
    for _ in range(_MAX_ROWS):
        end = text.find("\n", at + 1, at + _MAX_ROW_CHARACTERS) if at >= 0 else -1
        line = text[at + 1 : end] if end >= 0 else text[at + 1 : at + _MAX_ROW_CHARACTERS]
        if at < 0 or not line.lstrip(" \t>").startswith(("|", "^")):
            return
        cell = _find_cell(line, column)
        if cell is not None and is_cell_secret(name.kind, line[slice(*cell)]):
            yield SecretSpan(at + 1 + cell[0], at + 1 + cell[1], _RULE)
        at = end


def _find_cell(line: str, column: int) -> tuple[int, int] | None:
    """Return the span of a column's cell in a row, without the markup around it."""
    partings = list(_DELIMITER.finditer(line))
    if column >= len(partings):
        return None
    start = partings[column].end()
    end = partings[column + 1].start() if column + 1 < len(partings) else len(line)
    inner = line[start:end].strip(_CELL_MARKS + "%{}")
    if not inner:
        return None
    start = line.index(inner, start)
    return start, start + len(inner)


def _select_patterns(text: str, name: Name) -> Iterator[re.Pattern[str]]:
    """Yield the patterns to try on the text after a name, by what precedes the name."""
    yield _ELEMENT
    if _FIRST_IN_ELEMENT.search(text, max(0, name.start - 60), name.start):
        yield _LABELLED
    yield _ATTRIBUTE
    if _GETTER.search(text, max(0, name.start - 40), name.start):
        yield _SECOND
    yield _CALL
    if name.text.lower() in _SQL_WORDS:
        yield _SQL


def _accept_in_markup(
    name: Name, match: re.Match[str], pattern: re.Pattern[str]
) -> SecretSpan | None:
    group = next(g for g in _TEXTS if g in match.re.groupindex and match[g] is not None)
    start, end = match.span(group)
    value = match[group].strip()
    start += len(match[group]) - len(match[group].lstrip())
    end = start + len(value)
    if any(map(str.isspace, value)):
        phrase = name.kind is ValueKind.PASSWORD and is_phrase(value)
        return SecretSpan(start, end, _RULE) if phrase else None
    if name.kind is ValueKind.PAIR:
        return None
    if name.kind is ValueKind.RANDOM:
        return SecretSpan(start, end, _RULE) if is_generated(value) else None
    if name.kind is ValueKind.PIN:
        good = is_pin(value)
    elif name.kind is ValueKind.PASSWORD:
        quoted = group in {"double", "single", "tick"}
        good = is_secret_value(ValueKind.PASSWORD, value, is_quoted=quoted)
        if pattern is _CALL and value.replace("_", "").isalpha():
            good = is_alphabetic_password(value) and _is_password_call(name, match)
        good = good or (group in {"text", "bare"} and is_alphabetic_password(value))
    else:
        good = is_secret_value(ValueKind.KEY, value, is_quoted=True) or (
            pattern is _ELEMENT and is_bare_password(value) and not value.isdigit()
        )
    return SecretSpan(start, end, _RULE) if good else None


def _is_password_call(name: Name, match: re.Match[str]) -> bool:
    """Return whether the argument of a call is the password: `setPassword("X")`, `PASSWORD || "X"`.

    In other calls, the argument is a text about a password.
    """
    if "(" not in match[0]:
        return True
    method = match.string[name.start - 1 : name.start] in {".", ">", ":"} or "." in name.text
    return method or name.text.lower().startswith(("set", "with"))


_ARN_REACH = 120
_ARN = re.compile(r"\barn:aws[\w-]*:[\w:/-]*\Z")
"""Matches the text before a name that is part of a resource's name:
`arn:aws:secretsmanager:…:secret:X`."""


def _is_in_arn(text: str, start: int) -> bool:
    low = max(0, start - _ARN_REACH)
    return text.find("arn:", low, start) >= 0 and _ARN.search(text, low, start) is not None


def _find_named(text: str, anchors: Sequence[Anchor]) -> Iterator[SecretSpan]:
    done = 0
    for name in find_names(text, anchors):
        if name.end <= done or _is_in_arn(text, name.start):
            continue
        for span in (
            *find_assigned(text, name),
            *find_in_markup(text, name),
            *find_stated(text, name),
        ):
            if span.start >= name.end:
                done = span.end
            yield span


RULES: Sequence[Rule] = (Rule(ANCHORS, _find_named),)
