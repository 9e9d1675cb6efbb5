"""Commands for judged questions: the passages that a tenant's searches should find."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from rag_assets.cli.arguments import Json, TenantArgument
from rag_assets.cli.output import print_json, print_table, say, warn
from rag_assets.cli.session import Session, with_reading_session, with_session
from rag_assets.common.errors import ConfigurationError
from rag_assets.common.formatting import format_count
from rag_assets.privacy.masker import get_masker
from rag_assets.quality.files import SUFFIXES, ReadQuestions, read_judgements, write_beir
from rag_assets.quality.store import find_judged_documents, read_questions, store_questions
from rag_assets.quality.yaml_files import format_yaml, to_mapping

_MAX_SHOWN_PATHS = 5

app = typer.Typer()


@app.command("import")
@with_session
def import_files(
    session: Session,
    tenant_id: TenantArgument,
    paths: Annotated[
        list[Path],
        typer.Argument(
            metavar="PATH...",
            help="YAML files, folders of them, or BEIR folders (queries.jsonl and qrels).",
        ),
    ],
    *,
    split: Annotated[
        str | None, typer.Option(help="Split of a BEIR folder's qrels; by default test.")
    ] = None,
    replace: Annotated[
        bool, typer.Option("--replace", help="Remove all other judged questions.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Import judged questions, all or none; a question with an existing id is replaced."""
    ref = session.catalog.tenants.get(tenant_id).ref
    read = read_judgements(
        paths,
        read_questions(session.catalog, tenant_id),
        split=split,
        is_refused=get_masker(session.settings.local).holds_credential,
    )
    removed = store_questions(
        session.catalog, ref, read.questions, others="replace judged" if replace else "keep"
    )
    unknown = _warn_unknown_paths(session, tenant_id, read)
    judgements = sum(len(question.relevant) for question in read.questions)
    if as_json:
        print_json(
            {
                "tenant": tenant_id,
                "questions": len(read.questions),
                "judgements": judgements,
                "removed": removed,
                "unknown_documents": unknown,
            }
        )
        return
    removal_note = f"; {removed:,} others removed" if removed else ""
    say(
        f"{tenant_id}: {format_count(len(read.questions), 'question')} with"
        f" {format_count(judgements, 'judgement')} stored{removal_note}"
    )


@app.command("export")
@with_reading_session
def export(
    session: Session,
    tenant_id: TenantArgument,
    path: Annotated[
        Path | None,
        typer.Argument(
            metavar="PATH",
            help="YAML file or BEIR folder to create; by default YAML on standard output.",
        ),
    ] = None,
    *,
    as_json: Json = False,
) -> None:
    """Write a tenant's judged questions in a format that can be imported."""
    session.catalog.tenants.get(tenant_id)
    questions = read_questions(session.catalog, tenant_id)
    if path is None:
        if as_json:
            print_json({"questions": [to_mapping(question) for question in questions]})
        else:
            # Only a terminal would obey control characters in the text.
            text = format_yaml(questions)
            (say if sys.stdout.isatty() else sys.stdout.write)(text)
        return
    quotes = 0
    try:
        if path.suffix in SUFFIXES:
            path.write_text(format_yaml(questions), encoding="utf-8")
        else:
            quotes = write_beir(path, questions)
    except OSError as error:
        raise ConfigurationError(
            f"{path.name} cannot be written: {error.strerror or type(error).__name__}",
            hint="choose a different path",
        ) from None
    if quotes:
        warn(f"{format_count(quotes, 'quote')} left out: qrels judge documents, not passages")
    if as_json:
        print_json({"tenant": tenant_id, "questions": len(questions), "path": path})
        return
    say(f"{format_count(len(questions), 'question')} of {tenant_id} written to {path}")


@app.command("list")
@with_reading_session
def list_questions(session: Session, tenant_id: TenantArgument, *, as_json: Json = False) -> None:
    """List a tenant's judged questions, and judged documents that no longer exist."""
    session.catalog.tenants.get(tenant_id)
    questions = read_questions(session.catalog, tenant_id)
    present = find_judged_documents(session.catalog, tenant_id, questions)
    missing_documents = {
        question.id: sorted({judged.path for judged in question.relevant} - present.keys())
        for question in questions
    }
    if as_json:
        rows = [
            {
                "id": question.id,
                "kind": question.kind,
                "question": question.question,
                "synthetic": question.synthetic,
                "judgements": len(question.relevant),
                "gone": missing_documents[question.id],
            }
            for question in questions
        ]
        print_json({"questions": rows})
        return
    print_table(
        ["id", "kind", "question", "judgements", "missing documents"],
        [
            (
                question.id,
                "synthetic" if question.synthetic else question.kind,
                question.question,
                len(question.relevant),
                ", ".join(missing_documents[question.id]),
            )
            for question in questions
        ],
    )


@app.command("propose")
@with_session
def propose(
    session: Session,
    tenant_id: TenantArgument,
    count: Annotated[
        int, typer.Option(min=0, max=10_000, help="Maximum number of questions; 0 removes them.")
    ] = 50,
    *,
    as_json: Json = False,
) -> None:
    """Replace the synthetic questions with new questions from headings; they hold back no build."""
    from rag_assets.quality.store import propose_questions

    ctx = session.build_reader_context(tenant_id)
    questions = propose_questions(ctx, count)
    store_questions(ctx.catalog, ctx.ref, questions, others="replace synthetic")
    if as_json:
        print_json(
            {"tenant": tenant_id, "questions": [to_mapping(question) for question in questions]}
        )
        return
    say(
        f"{tenant_id}: {format_count(len(questions), 'synthetic question')} created from "
        "headings; `eval` reports them separately, and they hold back no build"
    )


def _warn_unknown_paths(session: Session, tenant_id: str, read: ReadQuestions) -> list[str]:
    """Warn about paths that match no document of the tenant yet, and return them."""
    present = find_judged_documents(session.catalog, tenant_id, read.questions)
    paths = {judged.path for question in read.questions for judged in question.relevant}
    unknown = sorted(paths - present.keys())
    places = [str(read.places[path]) for path in unknown if path in read.places]
    if unknown:
        rest = "; …" if len(places) > _MAX_SHOWN_PATHS else ""
        where = f" ({'; '.join(places[:_MAX_SHOWN_PATHS])}{rest})" if places else ""
        count = format_count(len(unknown), "path names no document", "paths name no documents")
        warn(f"{count} of {tenant_id} now{where}: questions about them are not measured")
    return unknown
