"""The reference of every error text, with the surfaces where it appears.

Kinds of failures and problems come from their tables; all other texts from the source, where an
error is created.
"""

from __future__ import annotations

import ast
import builtins
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from importlib import import_module
from pathlib import Path

from rag_assets.api.problems import HTTP_KINDS, get_kinds_by_error, get_problem_kind
from rag_assets.common import errors
from rag_assets.common.errors import RagAssetsError
from rag_assets.common.failure_kinds import OF_PROVIDERS, WORDS, failure_kind
from rag_assets.common.invalid_values import PATTERNS, allowed_texts
from rag_assets.systems.team_guidelines.contexts import REASONS

_ROOT = Path(__file__).resolve().parents[2]
_SOURCES = ("rag_assets", "checks", "sensors", "resources")
_INTERNAL = 500
_HEAD = """# Errors

This page is for everybody who looks up the text of an error. It says where each text appears. A
name in braces stands for a value. The page is written from the code; it lacks only texts that the
code computes, such as those of a library.

- **Operators** read the message and, after the arrow, its remedy. They appear on the command line,
  in the log, in Dagster, in `documents.error_message` and in the check `quarantine`.
- **Admins and members** read the text of the [kind](#kinds-of-failures) for a document, otherwise
  message and remedy. They appear in the panel, in the API and over MCP.
- **Applications** get a [problem](#problems-of-the-api) with `type`, `title`, `status` and
  `detail`.

For an invalid request, `errors[]` has each `field`. `problem` has [the allowed
value](#invalid-fields) and the kind of the sent value. No text repeats a credential, a text of a
document, or a string that was sent.
"""

Texts = dict[str, set[tuple[str, str]]]


def build_errors_page() -> str:
    """Return the page's text."""
    classes = find_classes()
    texts = _find_texts(classes)
    parts = [
        _HEAD,
        *_write_kinds(classes),
        *_write_problems(),
        *_write_reasons(),
        *_write_fields(texts.pop("ValueError")),
    ]
    parts += [
        "\n## Texts by error\n",
        "Each text is the message, and after the arrow its remedy.\n",
    ]
    for name in sorted(texts):
        parts += _write_section(classes[name], texts[name])
    return "\n".join(parts).rstrip() + "\n"


def _write_kinds(classes: Mapping[str, type[RagAssetsError]]) -> Iterator[str]:
    yield "\n## Kinds of failures\n"
    yield "| kind | text for a document | text for a request | retry helps | errors |"
    yield "|---|---|---|---|---|"
    for kind, words in WORDS.items():
        names = sorted(
            name
            for name, error in classes.items()
            if _is_document_error(error) and kind in _find_kinds(error)
        )
        is_same = words.text_of_request == words.text
        request = "the same" if is_same else words.text_of_request
        request = request if kind in OF_PROVIDERS else "none"
        retry = "yes" if words.can_retry else "no"
        yield f"| `{kind}` | {words.text} | {request} | {retry} | {', '.join(names)} |"


def _find_kinds(error: type[RagAssetsError]) -> set[str]:
    """Return the failure kinds of an error class, over all attributes that decide the kind."""
    samples = [error("x")]
    if issubclass(error, errors.RequestRefused):
        faults: tuple[errors.Fault, ...] = ("key", "model", "quota", "address")
        own = error in {errors.ProviderRefused, errors.ChatRefused}
        samples += [error("x", fault=fault) for fault in faults if own]
    if error is errors.ProviderUnavailable:
        limited = errors.ProviderUnavailable("x")
        limited.is_limited = True
        samples.append(limited)
    return {failure_kind(sample) for sample in samples}


def _write_problems() -> Iterator[str]:
    yield "\n## Problems of the API\n"
    yield "| status | type | title | detail | errors |"
    yield "|---|---|---|---|---|"
    rows: dict[tuple[int, str, str, str], list[str]] = defaultdict(list)
    for error, kind in get_kinds_by_error().items():
        detail = kind.detail or _describe_detail(error, kind.status)
        rows[kind.status, kind.name, kind.title, detail].append(error.__name__)
    for kind in HTTP_KINDS:
        rows[kind.status, kind.name, kind.title, "none"].append("")
    for (status, name, title, detail), names in sorted(rows.items()):
        yield f"| {status} | `{name}` | {title} | {detail} | {', '.join(filter(None, names))} |"


def _describe_detail(error: type[RagAssetsError], status: int) -> str:
    if status < _INTERNAL:
        return "message and remedy"
    if issubclass(error, errors.ProviderError | errors.ChatError):
        return "text of the [kind](#kinds-of-failures), for a request"
    return "none: the log has it, under the request's id"


def _write_reasons() -> Iterator[str]:
    yield "\n## Reasons of a context without passages\n"
    yield "`reason` and `detail` of `POST /api/projects/{id}/guidelines/context`, the panel's"
    yield "“Try it” and `rag-assets guidelines context`. A failure of a provider has the text of"
    yield "its kind as `detail`.\n"
    yield "| reason | detail |"
    yield "|---|---|"
    yield from (f"| `{reason}` | {text} |" for reason, text in REASONS.items())


def _write_fields(values: set[tuple[str, str]]) -> Iterator[str]:
    yield "\n## Invalid fields\n"
    yield "`errors[].problem` of an invalid request, followed by what came, as in"
    yield "“it must be an array; got a string”; for tenants.yaml and commands without that.\n"
    for text in sorted({*allowed_texts(), *PATTERNS.values(), *(text for text, _ in values)}):
        yield f"- {_escape(text)}"


def _write_section(error: type[RagAssetsError], texts: set[tuple[str, str]]) -> Iterator[str]:
    yield f"\n### {error.__name__}\n"
    yield f"{(error.__doc__ or '').strip().partition(chr(10))[0]} {_describe_surfaces(error)}\n"
    for message, hint in sorted(texts):
        yield f"- {_escape(message)}" + (f" → {_escape(hint)}" if hint else "")


def _describe_surfaces(error: type[RagAssetsError]) -> str:
    kind = get_problem_kind(error)
    if _is_document_error(error):
        kinds = ", ".join(f"`{each}`" for each in sorted(_find_kinds(error)))
        return f"Operators read these texts; admins read those of {kinds}."
    if kind.name == "internal":
        return "Command line and log; the API answers `internal` without it."
    if kind.detail is not None or kind.status >= _INTERNAL:
        return f"Command line and log; the API answers `{kind.name}` ({kind.status}) without it."
    return f"Command line, panel, MCP, and the API as `{kind.name}` ({kind.status})."


def _is_document_error(error: type[RagAssetsError]) -> bool:
    return issubclass(error, errors.DocumentRejected | errors.ProviderError | errors.ChatError)


def find_classes() -> dict[str, type[RagAssetsError]]:
    """Return every error class by name; imports the modules that define any.

    Of two classes with one name, this is the server's, not that of the Python client.
    """
    for path in _list_modules():
        text = path.read_text(encoding="utf-8")
        if any(
            isinstance(node, ast.ClassDef) and _is_error(node) for node in ast.walk(ast.parse(text))
        ):
            import_module(".".join(path.relative_to(_ROOT).with_suffix("").parts))
    classes: dict[str, type[RagAssetsError]] = {}
    rest: list[type[RagAssetsError]] = [RagAssetsError]
    while rest:
        error = rest.pop()
        rest += error.__subclasses__()
        if not error.__module__.startswith("rag_assets.client"):
            classes[error.__name__] = error
        else:
            classes.setdefault(error.__name__, error)
    return {
        name: error for name, error in classes.items() if error.__module__.startswith("rag_assets")
    }


def _is_error(node: ast.ClassDef) -> bool:
    names = {base.id for base in node.bases if isinstance(base, ast.Name)}
    return any(name not in vars(builtins) and hasattr(errors, name) for name in names)


def _list_modules() -> Iterator[Path]:
    for folder in _SOURCES:
        yield from sorted((_ROOT / folder).rglob("*.py"))


def _find_texts(classes: Mapping[str, type[RagAssetsError]]) -> Texts:
    """Return messages and remedies by the name of the error that they are created with."""
    texts: Texts = defaultdict(set)
    trees = [ast.parse(path.read_text(encoding="utf-8")) for path in _list_modules()]
    made_by = {name: name for name in (*classes, "ValueError")}
    for tree in trees:
        made_by |= {n: c for n, c in _find_makers(tree, classes).items() if not n.startswith("_")}
    shared = {name: text for tree in trees for name, text in _find_constants(tree).items()}
    for tree in trees:
        constants = shared | _find_constants(tree)
        makers = made_by | _find_makers(tree, classes) | _find_class_parameters(tree, classes)
        if not _has_models(tree):
            del makers["ValueError"]
        for node in ast.walk(tree):
            if (
                isinstance(node, ast.Call)
                and (name := makers.get(_get_called_name(node))) is not None
            ):
                hint = next((k.value for k in node.keywords if k.arg == "hint"), None)
                for message in _list_alternatives(node.args[0] if node.args else None, constants):
                    texts[name].update(
                        (message, remedy) for remedy in _list_alternatives(hint, constants) or [""]
                    )
    return texts


def _has_models(tree: ast.Module) -> bool:
    """Return whether a module validates fields, so that its value errors describe them."""
    return any(isinstance(n, ast.ImportFrom) and n.module == "pydantic" for n in ast.walk(tree))


def _find_makers(tree: ast.Module, classes: Collection[str]) -> dict[str, str]:
    """Return the functions of a module that build an error from a message, with its class."""
    return {
        node.name: node.returns.id
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef)
        and isinstance(node.returns, ast.Name)
        and node.returns.id in classes
        and node.args.args
        and node.args.args[0].arg in {"message", "problem", "reason", "what", "text", "said"}
    }


def _find_class_parameters(tree: ast.Module, classes: Collection[str]) -> dict[str, str]:
    """Return the parameters that a module raises because they are a class of errors."""
    raised = {
        node.exc.func.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Raise)
        and isinstance(node.exc, ast.Call)
        and isinstance(node.exc.func, ast.Name)
    }
    return {
        node.arg: name
        for node in ast.walk(tree)
        if isinstance(node, ast.arg) and node.arg in raised and node.annotation is not None
        for name in classes
        if ast.unparse(node.annotation) == f"type[{name}]"
    }


def _get_called_name(node: ast.Call) -> str:
    function = node.func
    return function.id if isinstance(function, ast.Name) else getattr(function, "attr", "")


def _find_constants(tree: ast.Module) -> dict[str, str]:
    """Return the texts of a module that have a name."""
    return {
        target.id: statement.value.value
        for statement in tree.body
        if isinstance(statement, ast.Assign | ast.AnnAssign)
        and isinstance(statement.value, ast.Constant)
        and isinstance(statement.value.value, str)
        for target in (
            statement.targets if isinstance(statement, ast.Assign) else [statement.target]
        )
        if isinstance(target, ast.Name)
    }


def _list_alternatives(node: ast.expr | None, constants: Mapping[str, str]) -> list[str]:
    """Return the literal texts of an expression; empty if it has none."""
    match node:
        case ast.Constant(value=str(text)):
            return [text]
        case ast.Name(id=name) | ast.Attribute(attr=name) if name in constants:
            return [constants[name]]
        case ast.JoinedStr(values=values):
            return ["".join(_format_part(value, constants) for value in values)]
        case ast.IfExp(body=body, orelse=orelse):
            return [*_list_alternatives(body, constants), *_list_alternatives(orelse, constants)]
        case ast.BoolOp(values=values):
            return [text for value in values for text in _list_alternatives(value, constants)]
    return []


def _format_part(node: ast.expr, constants: Mapping[str, str]) -> str:
    if isinstance(node, ast.Constant):
        return str(node.value)
    value = node.value if isinstance(node, ast.FormattedValue) else node
    if isinstance(value, ast.Name) and value.id in constants:
        return constants[value.id]
    return f"{{{_get_name(value)}}}"


def _get_name(node: ast.expr) -> str:
    match node:
        case ast.Name(id=name):
            return name.strip("_")
        case ast.Attribute(attr=name):
            return name.strip("_")
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name), args=[first, *_]):
            inner = _get_name(first)
            return inner if inner != "…" else name.strip("_")
        case ast.Subscript(value=value):
            return _get_name(value)
    return "…"


def _escape(text: str) -> str:
    """Return a text on one line, with Markdown escaped."""
    return " ".join(text.split()).replace("<", "&lt;").replace("*", r"\*").replace("[", r"\[")
