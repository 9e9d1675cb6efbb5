"""The subject of a question: the names in it, the kinds of definitions it asks for, its topic.

"Which endpoint takes it, what validates the number, and where is it stored?" asks for a route, a
request and a table without naming any. Such words state a kind; the remaining words are the topic.
The topic omits such words, because a full-text search would match them only by chance.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from rag_assets.systems.code_memory.symbols.names import TABLE, remove_type_arguments
from rag_assets.systems.code_memory.symbols.source_types import SourceType

MAX_NAMES = 12

_METHODS: Final = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
_UNSPACED: Final = (
    r"\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3000-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff"
    r"\uff00-\uffef"
)
"""Characters of scripts that put particles or punctuation directly after a name."""
_TOKEN: Final = re.compile(rf"[{_UNSPACED}]+|[^\s\x00,;!()\"'`{_UNSPACED}]+")
_MAX_NAME_CHARACTERS: Final = 300
"""Maximum characters of a name; a longer word is not a name."""

_PART: Final = r"[A-Za-z_]\w*"
_SHAPES: Final = (
    # File paths such as app/Models/Invoice.php; URL paths such as /invoices/{invoice}/edit.
    r"(?:[\w.@-]+/)+[\w@-]+\.\w{1,8}",
    r"/[\w{}<>:.*/-]+",
    # Qualified names: Invoice@total, App\Models\Invoice::total, App\Models\Invoice.
    rf"\\?{_PART}(?:\\{_PART})*(?:(?:@|::|->|#){_PART})+(?:\(\))?",
    rf"\\?{_PART}(?:\\{_PART})+",
    # Dotted names, but not abbreviations: invoices.store, billing.models.Invoice.
    r"(?=[\w.-]*\w{3})[A-Za-z_][\w-]*(?:\.[A-Za-z_][\w-]*)+",
    # Names of several words: InvoiceController, sendReminder, invoice_lines.
    r"(?=\w*[a-z])[A-Z]\w*[A-Z]\w*|[a-z]+[A-Z]\w*|[A-Za-z0-9]+(?:_[A-Za-z0-9]+)+",
)
_NAME: Final = re.compile("|".join(f"(?:{shape})" for shape in _SHAPES))
_MARKS: Final = r"(?:\[\]=?|===?|!=|=~|<=>|<<|>>|<=|>=|\*\*|[-+*%<>!^&|~]@?)"
"""Matches the name of an operator, as languages define it for a class."""
_WHOLE_NAME: Final = re.compile(
    r"(?=.{2,300}$)(?:"
    r"[$\\@~]?(?=\d*[A-Za-z_])\w+(?:(?:::|->|[.#@\\/-])~?[\w]+)*"
    r"(?:[?!=]|(?<=operator)(?:[-+*/%^&|<>=]{1,3}|\[\])"
    rf"|(?:::|[.#]){_MARKS})?(?:\(\))?|{_MARKS})"
)
_OPERATOR: Final = re.compile(rf"\boperator\W+|(?:^|::|[.#]){_MARKS}$")
"""Matches the end of the name of an operator, whose marks belong to the name."""
_FOLDER_NAME: Final = r"(?:\[+[\w.]+\]+|\([\w.]+\)|[\w@+$.-]+)"
_FILE_NAME: Final = re.compile(
    rf"(?=.{{3,300}}$)(?=\W*\d*[A-Za-z_])(?:{_FOLDER_NAME}/)*"
    r"(?:\[+[\w.]+\]+|[\w@+$-]*)(?:\.[\w@+$-]+)*\.[A-Za-z]\w{0,11}",
    re.ASCII,
)
"""Matches the name or the path of a file, such as `[id].tsx`, `+page.svelte` or `2024_users.rb`."""
_NAME_IN_FILE: Final = re.compile(
    rf"(?=.{{3,300}}$)(?:{_FOLDER_NAME}/)+{_FOLDER_NAME}#[A-Za-z_$][\w.$]*(?:\(\))?", re.ASCII
)
"""Matches a name that is qualified by a path, such as `app/(shop)/[id]/page#Total`."""
_NAME_WITH_MARK: Final = re.compile(r"[\w:.#]+[?!=]")
_TYPES: Final = frozenset(
    {"table", "model", "class", "controller", "route", "job", "event", "listener", "policy"}
    | {"middleware", "service", "command"}
)
_QUESTION_WORDS: Final = frozenset({"which", "what", "whose"})
_QUOTES: Final = "`\"'"
_TRAILING_MARKS: Final = ".:?"
_LITERAL: Final = re.compile(r"\S+\s+\S+\s+\S|\w[^\w\s]+\w|_|[a-z][A-Z]")
"""Matches text that is rarely found by chance: three words, or a name of several words."""
_WORD: Final = re.compile(r"[A-Za-z]+")
_PHRASE: Final = re.compile(r"\s*[A-Za-z][A-Za-z0-9]*(?:\s+[A-Za-z0-9]+){1,7}\s*")
"""Matches two to eight plain words, which a definition may have as its name (`send reminder`)."""

_TYPES_BY_WORD: Final[Mapping[str, tuple[SourceType, ...]]] = {
    "controller": ("controller_method", "controller"),
    "route": ("route",),
    "endpoint": ("route", "api_endpoint"),
    "url": ("route",),
    "model": ("model", "model_relation"),
    "relation": ("model_relation",),
    "table": ("table",),
    "column": ("table", "migration"),
    "migration": ("migration",),
    "job": ("job",),
    "event": ("event",),
    "listener": ("listener",),
    "policy": ("policy",),
    "policies": ("policy",),
    "middleware": ("middleware",),
    "request": ("request",),
    "resource": ("resource",),
    "service": ("service",),
    "run": ("file_change", "run_summary"),
    "bug": ("known_bug",),
    "decision": ("adr",),
    "rule": ("cursor_rule", "claude_rule"),
    "package": ("package",),
    "config": ("config",),
}
"""Source types, by the word that asks for them; the words lack their plural `s`."""

_RELATION_WORDS: Final = frozenset(
    _WORD.findall(
        """
    a about add added agent all also alter altered always an and answer any are at back be been
    before behind being belong below by call called change changed class code column create
    created decide decided define defined delete deleted depend dependent did dispatch
    dispatched do doe done drop dropped each earlier else end every exist extend file find fire
    fired follow for former from function get give go guard guarded had handle handled has have
    her hi how i implement import in into is it its itself last lead list listen made make map
    mapped me method migrate more my name named no object of on one or other our out past point
    previou previous query reach read recent refer rename renamed respond return returned rename
    s same see serve served session show side so start store stored take tell test than that the
    their them then there these they thi this those through to touch touched up use used
    validate validated via wa was way we were what when where which who whose why will with work
    write written you
        """
    )
)
"""Words that occur in questions about relations; the words lack their plural `s`."""


@dataclass(frozen=True, slots=True)
class QuestionNames:
    """The names in a question.

    Attributes:
        wanted_types: source types that the question asks for.
        is_relational: whether all words besides the names ask for relations: "who calls".
        is_bare: whether the question consists of names alone.
    """

    names: tuple[str, ...]
    wanted_types: frozenset[str]
    is_relational: bool
    is_bare: bool = False

    def with_joined(self, name: str) -> QuestionNames:
        """Return these names with a further name in front: the joined words of the question."""
        return replace(self, names=(name, *self.names)[:MAX_NAMES], is_bare=True)


def build_quotation(query: str) -> re.Pattern[str] | None:
    """Return a pattern that finds the whole question in a text; None for one or two plain words.

    The pattern ignores case, differences of white space, and quotes around the question.
    """
    words = query[:_MAX_NAME_CHARACTERS].strip(_QUOTES).split()
    if len(query) > _MAX_NAME_CHARACTERS or not _LITERAL.search(" ".join(words)):
        return None
    return re.compile(r"\s+".join(map(re.escape, words)), re.IGNORECASE)


def join_words(query: str) -> str | None:
    """Return a question of two to eight words, joined to one name; None for any other question."""
    if len(query) > _MAX_NAME_CHARACTERS or not _PHRASE.fullmatch(query):
        return None
    return "".join(query.split())


def find_question_names(
    query: str,
    *,
    route_name: str | None = None,
    controller_class: str | None = None,
    table_name: str | None = None,
) -> QuestionNames:
    """Return the names in a question; names in the request's options come first."""
    table = TABLE + table_name.removeprefix(TABLE) if table_name else None
    names_in_options = [name for name in (route_name, controller_class, table) if name]
    in_question, rest = _read_question(query)
    words = [_remove_plural(word.lower()) for token in rest for word in _WORD.findall(token)]
    wanted_types = {kind for word in words for kind in _TYPES_BY_WORD.get(word, ())}
    names = tuple(dict.fromkeys([*names_in_options, *in_question]))[:MAX_NAMES]
    # Words in other scripts are not understood, so they may ask for anything.
    plain = not any(
        character.isalpha() and not character.isascii() for token in rest for character in token
    )
    plain = plain and all(word in _RELATION_WORDS or word in _TYPES_BY_WORD for word in words)
    is_bare = bool(in_question) and not rest
    # The only word of a bare question may be an ordinary word.
    relational = bool(names_in_options) or any(map(_NAME.fullmatch, names)) or not is_bare
    return QuestionNames(
        names, frozenset(wanted_types), bool(names) and plain and relational, is_bare
    )


def _read_question(query: str) -> tuple[list[str], list[str]]:
    names: list[str] = []
    rest: list[str] = []
    whole = query.strip()
    if _FILE_NAME.fullmatch(whole) or _NAME_IN_FILE.fullmatch(whole):
        return [whole.removesuffix("()")], []
    bare = remove_type_arguments(query[: _MAX_NAME_CHARACTERS + 1])
    query = bare if _WHOLE_NAME.fullmatch(bare.strip()) else query
    tokens = list(_TOKEN.finditer(query))
    if len(tokens) == 1 and _WHOLE_NAME.fullmatch(tokens[0].group()):
        # A single word is a name, whatever its form: `save!`, `nil?`, `x=`, `~Table`.
        plain, whole = tokens[0].group().removesuffix("()").rstrip("?!="), query.strip()
        if _OPERATOR.search(whole) is not None:
            return [whole], []
        return [whole, plain] if _NAME_WITH_MARK.fullmatch(whole) else [plain], []
    at = 0
    while at < len(tokens):
        token = tokens[at].group().rstrip(_TRAILING_MARKS)
        after = tokens[at + 1].group().rstrip(_TRAILING_MARKS) if at + 1 < len(tokens) else ""
        if token in _METHODS and after.startswith("/"):
            names.append(f"{token} {after}"[:_MAX_NAME_CHARACTERS])
            at += 2
        elif _is_name(token, tokens[at], query):
            names.append(token)
            # A type word next to a name describes the name; it does not ask for that type.
            if rest and rest[-1] in _TYPES:
                rest.pop()
            at += 2 if after in _TYPES else 1
        elif (
            token in _TYPES
            and _may_be_called(after)
            and not (rest and rest[-1].lower() in _QUESTION_WORDS)  # As in "which middleware".
        ):
            names.append(after)
            at += 2
        elif after in _TYPES and _may_be_called(token):
            names.append(token)
            at += 2
        else:
            rest.append(token)
            at += 1
    return names, rest


def _is_name(token: str, match: re.Match[str], query: str) -> bool:
    """Return whether a word has the shape of a name, or is quoted."""
    if not token or len(token) > _MAX_NAME_CHARACTERS:
        return False
    before = query[max(0, match.start() - 1) : match.start()]
    after = query[match.end() : match.end() + 1]
    return (before == after and before in {*_QUOTES}) or _NAME.fullmatch(token) is not None


def _may_be_called(word: str) -> bool:
    """Return whether a word next to a type word may be a name: not if it is a question word."""
    plain = word.lower()
    known = (
        plain in _RELATION_WORDS or _remove_plural(plain) in _RELATION_WORDS | _TYPES_BY_WORD.keys()
    )
    return bool(word) and len(word) <= _MAX_NAME_CHARACTERS and word.isidentifier() and not known


def _remove_plural(word: str) -> str:
    return word.removesuffix("s") if len(word) > 1 else word


_TYPES_BY_BEGINNING: Final[Mapping[str, tuple[SourceType, ...]]] = {
    "endpoint": ("route", "controller_method"),
    "url": ("route", "controller_method"),
    "api": ("route", "controller_method"),
    "validat": ("request",),
    "authori": ("policy",),
    "allow": ("policy",),
    "permi": ("policy",),
    "forbid": ("policy",),
    "background": ("job",),
    "asynchron": ("job",),
    "announc": ("event", "listener"),
    "notif": ("event", "listener"),
    "react": ("event", "listener"),
    "column": ("table", "migration"),
    "schema": ("table", "migration"),
    "database": ("table", "model"),
    "stor": ("table", "model"),
    "kept": ("table", "model"),
    "sav": ("table", "model"),
    "record": ("table", "model"),
    "persist": ("table", "model"),
}
"""Source types, by the beginning of a word that asks for them."""

_FILLER_WORDS: Final = frozenset({"call", "called", "code", "do", "handle", "step", "work"})
"""Words in questions about code that do not belong to the topic; they lack their plural `s`."""

_KIND_TOKEN: Final = re.compile(r"[^\s,;:?!()\"]+")
_COMPOUND: Final = re.compile(r"[A-Za-z]+(?:[.-][A-Za-z]+)+")
_TEST: Final = re.compile(r"\btest", re.IGNORECASE)


class QuestionKinds(NamedTuple):
    """The kinds of definitions that a question asks for, and its topic.

    Attributes:
        wanted_types: source types that the question asks for.
        topic: the question without the words that ask for a kind; a compound such as `two-factor`
            is followed by its spelling in code, `twofactor`.
    """

    wanted_types: frozenset[str]
    is_about_tests: bool
    topic: str


def find_question_kinds(query: str) -> QuestionKinds:
    """Return the kinds of definitions that a question asks for, and its topic."""
    wanted_types: set[str] = set()
    topic: list[str] = []
    for token in _KIND_TOKEN.findall(query):
        types_of_words = [_find_requested_types(word.lower()) for word in _WORD.findall(token)]
        wanted_types.update(*(types for types in types_of_words if types is not None))
        if any(types is None for types in types_of_words) or not types_of_words:
            topic.append(token)
            if _COMPOUND.fullmatch(token):
                topic.append(re.sub("[.-]", "", token))
    is_about_tests = _TEST.search(query) is not None
    return QuestionKinds(frozenset(wanted_types), is_about_tests, " ".join(topic) or query)


def _find_requested_types(word: str) -> tuple[SourceType, ...] | None:
    """Return the source types that a word asks for: () if it is filler, None if it is the topic."""
    if word.removesuffix("s") in _FILLER_WORDS or word in _FILLER_WORDS:
        return ()
    wanted_types = _TYPES_BY_WORD.get(_remove_plural(word)) or _TYPES_BY_WORD.get(word, ())
    beginnings = (types for start, types in _TYPES_BY_BEGINNING.items() if word.startswith(start))
    return (*wanted_types, *next(beginnings, ())) or None
