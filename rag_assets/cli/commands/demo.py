"""demo: index the example handbook, print the result of each stage, check it, search it."""

from __future__ import annotations

import shutil
import textwrap
from contextlib import closing
from time import monotonic
from typing import Any

from rag_assets.cli.commands.check import print_checks, run_checks
from rag_assets.cli.commands.document_summary import by_type, document_summaries, stage_lines
from rag_assets.cli.commands.hits import headline, print_hit
from rag_assets.cli.commands.output import print_json, print_table, progress, say, seconds
from rag_assets.cli.commands.session import TEMPLATES, Session, with_session
from rag_assets.cli.commands.sync import sync_tenant
from rag_assets.cli.commands.tenant_sync import TenantSync
from rag_assets.common.formatting import counted
from rag_assets.search import Retriever
from rag_assets.search.hits import excerpt
from rag_assets.search.model import Hit, SearchRequest
from rag_assets.tenants.file import TenantsFile, written_path

TENANT = "demo"
SETTINGS = {
    "profile": "documents",
    "parser": {"ocr": True},
    "chunkers": [
        {"formats": ["txt"], "chunker": "sentence", "max_characters": 800, "overlap": 100},
        {"formats": ["py", "sql"], "chunker": "recursive", "max_tokens": 220, "overlap": 32},
    ],
}
"""Settings as in the project's tenants.yaml, with OCR for the scanned page of the handbook."""

INCLUDE = ["*.*", "!.*"]
"""Patterns of files to index; they include source code, which the default patterns leave out."""

_EXAMPLES = TEMPLATES / "examples"
_TOP_K = 3
_LINE = 80


@with_session
def demo(session: Session, *, as_json: bool) -> bool:
    """Run the demo, and return whether every check passed and every question has hits."""
    started = monotonic()
    session.prepare_home()
    _headline("1. Servers", as_json=as_json)
    session.stack.start_servers(for_dagster=False, progress=progress)
    _add_tenant(session)
    _headline("2. Index examples/handbook", as_json=as_json)
    synced = sync_tenant(session, TENANT)
    if synced.error is not None:
        raise synced.error
    if not as_json:
        _print_stages(session, synced)
    passed, checks = _check(session, synced, as_json=as_json)
    _headline("4. Three questions", as_json=as_json)
    answers = _ask(session, as_json=as_json)
    if as_json:
        print_json(
            {
                "sync": synced.as_json(),
                "passed": passed,
                "checks": checks,
                "answers": answers,
                "seconds": round(monotonic() - started, 3),
            }
        )
    else:
        _print_next_steps(monotonic() - started, nothing_done=synced.nothing_to_do)
    return passed and all(answer["hits"] for answer in answers)


def _add_tenant(session: Session) -> None:
    folder = session.settings.home / "examples" / "handbook"
    if not folder.exists():
        # Package installers compile the Python file that is one of the documents.
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(_EXAMPLES / "handbook", folder, ignore=ignored)
    file = TenantsFile(session.settings.tenants_file)
    if TENANT not in file.load():
        root = written_path(folder, session.settings.home)
        source = {"name": "handbook", "type": "files", "root": root, "include": INCLUDE}
        file.add({"id": TENANT, **SETTINGS, "sources": [source]})


def _print_stages(session: Session, synced: TenantSync) -> None:
    """Print the documents and the result of each stage; the output is the same after every run."""
    if synced.nothing_to_do:
        say(f"Nothing changed, nothing to do ({seconds(synced.seconds)}). The tenant has:\n")
    else:
        say(f"{counted(len(synced.runs), 'run')}, {seconds(synced.seconds)}\n")
    held = document_summaries(session.reader(TENANT))
    print_table(
        ["type", "documents", "size", "contents", "cut by", "chunks", "tokens a chunk"],
        by_type(held),
    )
    say()
    serving = session.catalog.generations.serving(TENANT)
    lines = stage_lines(held, serving, session.store.indexes.view_name(TENANT))
    took = {name: seconds(counts["seconds"]) for name, counts in synced.stages.items()}
    rows = [
        (name if at == 0 else "", line, took.get(name, "") if at == 0 else "")
        for name, found in lines.items()
        for at, line in enumerate(found)
    ]
    print_table(["stage", "result", "time"], rows)


def _check(session: Session, synced: TenantSync, *, as_json: bool) -> tuple[bool, list[Any]]:
    _headline("3. Check it", as_json=as_json)
    if synced.nothing_to_do:
        if not as_json:
            say("Nothing changed since the last check. Check again with: rag-assets check demo")
        return True, []
    checks = run_checks(session, TENANT)
    if not as_json:
        print_checks(TENANT, checks)
    return all(check.passed or check.severity != "ERROR" for check in checks), list(checks)


def _ask(session: Session, *, as_json: bool) -> list[dict[str, Any]]:
    answers = []
    with closing(Retriever(session.catalog, session.store, session.embedders)) as retriever:
        for judged in _questions():
            question = str(judged["question"])
            found = retriever.search(TENANT, SearchRequest(query=question, top_k=_TOP_K))
            answers.append({"question": question, "hits": found.hits})
            if not as_json:
                _print_hits(question, str(judged["answer"]), found.hits)
    return answers


def _questions() -> list[dict[str, Any]]:
    from ruamel.yaml import YAML

    judged = YAML(typ="safe").load((_EXAMPLES / "questions.yaml").read_text(encoding="utf-8"))
    return [entry for entry in judged if entry.get("demo")]


def _print_hits(question: str, answer: str, hits: tuple[Hit, ...]) -> None:
    """Print the expected answer, the first hit with its text, and one line for each further hit."""
    say(f"Question:  {question}")
    say(textwrap.fill(f"Expected:  {' '.join(answer.split())}", 96, subsequent_indent=" " * 11))
    say()
    for number, hit in enumerate(hits, start=1):
        if number == 1:
            print_hit(hit)
        else:
            shown = excerpt(hit.text, question, _LINE, language=hit.language)
            say(f"{number}. {headline(hit)}\n   │ {shown}")
    say()


def _headline(text: str, *, as_json: bool) -> None:
    if not as_json:
        say(f"\n── {text} " + "─" * (70 - len(text)))


def _print_next_steps(elapsed: float, *, nothing_done: bool) -> None:
    done = "Nothing to do" if nothing_done else "Done"
    say(
        f"{done}, in {seconds(elapsed)}. The servers keep running. What to try next:\n"
        '  rag-assets search demo "who may approve a rollback?"\n'
        "  rag-assets documents demo            the status of each document\n"
        "  rag-assets tenants add mine --source ~/notes && rag-assets sync mine\n"
        "  rag-assets up                        Dagster's UI and daemon: edits are indexed\n"
        "  rag-assets down                      stop everything\n"
        "(rag-assets is .venv/bin/rag-assets unless the environment is activated)"
    )
