"""Search for the exact names of definitions, and measure the ranks of their files.

    python -m benchmarks.code_questions.identifiers --checkouts FOLDER [--only NAME...] [--keep]

FOLDER holds clones. In each, definitions outside tests are drawn with a seed, and each is searched
for in every form of its name. A hit is right if its file defines the name searched for: if several
definitions share a bare name, each is right.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from benchmarks.code_questions.questions import DEPTH
from benchmarks.code_questions.variants import TENANT, open_indexed
from benchmarks.measure import (
    PROJECT,
    create_parser,
    describe_machine,
    report_result,
)
from benchmarks.servers import benchmark_servers
from rag_assets.cli.session import Session
from rag_assets.ingest.sources.model import parse_path
from rag_assets.search import AsyncRetriever
from rag_assets.search.access import DocumentReader
from rag_assets.search.model import Caller, Hit, SearchRequest
from rag_assets.search.plan import load_installed_steps
from rag_assets.systems.code_memory.catalog.found_relations import FoundSymbol
from rag_assets.systems.code_memory.retrieval.walk import Walker
from rag_assets.systems.code_memory.symbols.names import split_name
from rag_assets.systems.code_memory.symbols.source_types import is_test

WORK: Final = PROJECT / ".local" / "benchmark-code-identifiers"
DRAWN: Final = 60
_SEED: Final = 40
_MOST_SYMBOLS: Final = 1_000_000
_OTHER_ROLES: Final = frozenset({"route", "operation", "table", "key"})
"""Roles of symbols that are not definitions in source code."""
_WORD: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z][a-z0-9]*|[a-z0-9]+|[A-Z0-9]+")
FORMS: Final = (
    "whole name",
    "last part",
    "snake_case",
    "camelCase",
    "words",
    "Class::method",
    "Class.method",
    "Class#method",
    "file name",
)


def main() -> None:
    """Search for the names in each repository, print the shares, and save them."""
    options = _parse_options()
    before = describe_machine()
    repositories: dict[str, Any] = {}
    for root in sorted(path.parent for path in options.checkouts.glob("*/.git")):
        if options.only and root.name not in options.only:
            continue
        folder = options.work / root.name
        with (
            benchmark_servers(folder, fresh=not options.keep) as servers,
            open_indexed(
                servers, folder / "home", root.resolve(), fresh=not options.keep
            ) as session,
        ):
            repositories[root.name] = measure(session, options.drawn, options.seed, options.show)
        print(root.name, format_shares(repositories[root.name]), flush=True)
    if options.only:
        return
    figures = {"seed": options.seed, "drawn": options.drawn, "depth": DEPTH}
    figures |= {"repositories": repositories}
    report_result("code-identifiers", "code-identifiers", before, figures)


def measure(session: Session, count: int, seed: int, has_details: bool = False) -> dict[str, Any]:
    """Return for each form how often it was asked, was first, and was among the first hits."""
    reader = DocumentReader(session.catalog, session.store)
    view = Walker(reader.catalog, reader.policy).get_serving_view(TENANT, Caller())
    if view is None:
        raise SystemExit("the tenant serves no index")
    symbols = view.find_by_parts([""], _MOST_SYMBOLS)
    symbols_by_uri: dict[str, list[FoundSymbol]] = {}
    for symbol in symbols:
        symbols_by_uri.setdefault(symbol.uri, []).append(symbol)
    searches = [
        (form, name, symbol)
        for symbol in draw_definitions(symbols, count, seed)
        for form, name in list_forms(symbol)
    ]
    answers = asyncio.run(_ask(session, [name for _, name, _ in searches]))
    shares = {form: {"asked": 0, "first": 0, "among": 0} for form in FORMS}
    for (form, name, symbol), hits in zip(searches, answers, strict=True):
        right = [_is_right(form, name, symbol, hit, symbols_by_uri) for hit in hits]
        counted = shares[form]
        counted["asked"] += 1
        counted["first"] += right[:1] == [True]
        counted["among"] += any(right)
        if has_details and right[:1] != [True]:
            rank = right.index(True) + 1 if any(right) else 0
            first = f"{hits[0].uri} {hits[0].symbol}" if hits else "nothing"
            print(f"   {form}: {name}  [{symbol.role} {symbol.uri}] rank {rank}; first: {first}")
    return {form: counts for form, counts in shares.items() if counts["asked"]}


def draw_definitions(symbols: Sequence[FoundSymbol], count: int, seed: int) -> list[FoundSymbol]:
    """Return `count` definitions in source code outside tests, drawn with a seed."""
    definitions = {
        (symbol.uri, symbol.name): symbol
        for symbol in symbols
        if symbol.role not in _OTHER_ROLES
        and not is_test(parse_path(symbol.uri))
        and split_name(symbol.name)
    }
    ordered = [definitions[key] for key in sorted(definitions)]
    return random.Random(seed).sample(ordered, min(count, len(ordered)))


def list_forms(symbol: FoundSymbol) -> Iterator[tuple[str, str]]:
    """Yield the forms in which people search for a definition."""
    parts = split_name(symbol.name, folded=False)
    last = parts[-1]
    yield "whole name", symbol.name
    yield "last part", last
    words = [word.lower() for word in _WORD.findall(last)]
    if len(words) > 1 and last.replace("_", "").isalnum():
        yield "snake_case", "_".join(words)
        yield "camelCase", words[0] + "".join(word.title() for word in words[1:])
        yield "words", " ".join(words)
    # Anonymous classes are named by their line, so nobody searches for them.
    is_anonymous = any(part.isdigit() for part in parts[-2:])
    if len(split_name(symbol.local_name)) > 1 and not is_anonymous:
        for form, mark in zip(FORMS[5:8], ("::", ".", "#"), strict=True):
            yield form, mark.join(parts[-2:])
    yield "file name", parse_path(symbol.uri).rpartition("/")[2]


def _is_right(
    form: str,
    name: str,
    symbol: FoundSymbol,
    hit: Hit,
    symbols_by_uri: Mapping[str, Sequence[FoundSymbol]],
) -> bool:
    if form == "file name":
        return parse_path(hit.uri).rpartition("/")[2] == name
    wanted_parts = split_name(symbol.name)
    if form in FORMS[5:8]:
        wanted_parts = wanted_parts[-2:]
    elif form != "whole name":
        wanted_parts = wanted_parts[-1:]
    definitions = (split_name(definition.name) for definition in symbols_by_uri.get(hit.uri, ()))
    return any(parts[-len(wanted_parts) :] == wanted_parts for parts in definitions)


async def _ask(session: Session, names: Sequence[str]) -> list[Sequence[Hit]]:
    retriever = AsyncRetriever(
        session.catalog,
        session.store,
        session.embedders,
        steps=load_installed_steps(),
        is_journaled=False,
    )
    try:
        return [
            (await retriever.search(TENANT, SearchRequest(query=name, top_k=DEPTH))).hits
            for name in names
        ]
    finally:
        await retriever.close()


def format_shares(shares: Mapping[str, Mapping[str, int]]) -> str:
    """Format the shares of first hits and of first ten hits, by form."""
    return " | ".join(
        f"{form} {counts['first'] / counts['asked']:.3f}/{counts['among'] / counts['asked']:.3f}"
        f" of {counts['asked']}"
        for form, counts in shares.items()
    )


def _parse_options() -> argparse.Namespace:
    parser = create_parser(__doc__, work=WORK)
    parser.add_argument("--checkouts", type=Path, required=True, help="folder of the clones")
    parser.add_argument("--only", nargs="+", help="clones to search")
    parser.add_argument("--drawn", type=int, default=DRAWN, help="number of definitions per clone")
    parser.add_argument("--seed", type=int, default=_SEED)
    parser.add_argument("--keep", action="store_true", help="use the indexes of the last run")
    parser.add_argument("--show", action="store_true", help="print names whose file is not first")
    return parser.parse_args()


if __name__ == "__main__":
    main()
