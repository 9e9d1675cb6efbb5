"""What a question can be asked with, declared once for every command that asks one."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from functools import wraps
from typing import Annotated, Any, Literal

import typer


def _question(
    question: Annotated[str, typer.Argument(help="What is asked.")],
    top_k: Annotated[int | None, typer.Option(help="How many hits.")] = None,
    min_score: Annotated[float | None, typer.Option(help="Least cosine of a hit.")] = None,
    mode: Annotated[
        Literal["knn", "text", "hybrid"] | None, typer.Option(help="Vectors, words, or both.")
    ] = None,
    principal: Annotated[
        list[str] | None,
        typer.Option("--as", help="Who asks; repeat for groups. By default only public is found."),
    ] = None,
    rerank: Annotated[
        bool | None, typer.Option(help="Whether a slower model orders the first again.")
    ] = None,
    document: Annotated[list[str] | None, typer.Option(help="Only of this id.")] = None,
    path: Annotated[
        list[str] | None, typer.Option(help="Only what lies there, as in source/folder.")
    ] = None,
    prefer: Annotated[list[str] | None, typer.Option(help="What lies there ranks higher.")] = None,
    tag: Annotated[list[str] | None, typer.Option(help="Only with this tag.")] = None,
    metadata: Annotated[
        list[str] | None, typer.Option(metavar="KEY=VALUE", help="Only with this value.")
    ] = None,
    source_type: Annotated[list[str] | None, typer.Option(help="Only from such sources.")] = None,
    language: Annotated[
        list[str] | None, typer.Option(help="Only in this language, as in de or python.")
    ] = None,
    after: Annotated[
        str | None, typer.Option(help="Only of content made on this day or later, or time.")
    ] = None,
    before: Annotated[str | None, typer.Option(help="Only of content made earlier.")] = None,
    token_budget: Annotated[int | None, typer.Option(help="Tokens of all hits at most.")] = None,
) -> dict[str, Any]:
    """The fields of a request; None where nothing was given."""
    return {
        "query": question,
        "top_k": top_k,
        "min_score": min_score,
        "mode": mode,
        "rerank": rerank,
        "token_budget": token_budget,
        "source_types": source_type,
        "must_include_paths": prefer,
        "filters": {
            "documents": document or (),
            "paths": path or (),
            "languages": language or (),
            "modified_after": after,
            "modified_before": before,
            "tags": tag or (),
            "metadata": _by_name(metadata or ()),
        },
        "caller": {"principals": principal or ()},
    }


def _by_name(given: Iterable[str]) -> dict[str, str]:
    pairs = [text.partition("=") for text in given]
    if not all(between for _, between, _ in pairs):
        raise typer.BadParameter("it must be KEY=VALUE", param_hint="'--metadata'")
    return {name: value for name, _, value in pairs}


def asking(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the question and its options, where it takes what they come to as `asked`."""
    declared = inspect.signature(_question, eval_str=True).parameters
    own = inspect.signature(command, eval_str=True)

    @wraps(command)
    def run(**given: Any) -> None:
        asked = _question(**{name: given.pop(name) for name in declared})
        command(asked=asked, **given)

    taken = [
        parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY)
        for name, one in own.parameters.items()
        for parameter in (declared.values() if name == "asked" else (one,))
    ]
    # Typer reads both.
    run.__signature__ = own.replace(parameters=taken)  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in taken}
    return run
