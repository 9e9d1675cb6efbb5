"""elasticsearch check, role, seal: see rag_assets.cli.elasticsearch."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING

from rag_assets.cli.commands.output import print_json, print_table, say
from rag_assets.cli.commands.session import Session, with_reading_session
from rag_assets.common.errors import ConfigurationError
from rag_assets.runtime.elasticsearch_access import seal_secret

if TYPE_CHECKING:
    from rag_assets.storage.index.elasticsearch.check import Purpose


@with_reading_session
def check(session: Session, purpose: Purpose, *, as_json: bool) -> bool:
    """Print the check of the server and its account, and return whether it found no problem.

    The check needs no catalog, so it works before the first sync.
    """
    from rag_assets.storage.index.elasticsearch.check import check_elasticsearch

    connection = session.stack.elasticsearch_connection()
    purposes: list[Purpose] = ["indexing", "searching"] if purpose == "indexing" else [purpose]
    found = check_elasticsearch(connection, session.settings.index_prefix, purposes)
    if as_json:
        print_json(asdict(found))
        return not found.problems
    lacking = found.missing or {}
    print_table(
        ["", ""],
        [
            ("nodes", found.nodes),
            ("version", found.version or "not stated"),
            ("flavor", found.flavor),
            ("licence", found.licence or "not stated"),
            ("health", found.health or "not visible"),
            *(
                (f"privileges for {name}", "missing" if lacks else "complete")
                for name, lacks in lacking.items()
            ),
        ],
    )
    for line in found.problems:
        say(f"\nProblem: {line}")
    for line in found.warnings:
        say(f"\nWarning: {line}")
    return not found.problems


@with_reading_session
def print_role(session: Session, purpose: Purpose) -> None:
    """Print the smallest role for a purpose."""
    from rag_assets.storage.index.elasticsearch.check import role_for

    say(json.dumps(role_for(purpose, session.settings.index_prefix), indent=2))


@with_reading_session
def seal(session: Session, secret: str) -> None:
    """Print a secret sealed with the master key."""
    if not secret.strip():
        raise ConfigurationError(
            "standard input contains no secret", hint="run `rag-assets elasticsearch seal < FILE`"
        )
    say(seal_secret(session.settings, secret.strip()))
