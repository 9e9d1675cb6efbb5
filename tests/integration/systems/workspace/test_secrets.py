"""The six credential patterns that a workspace drops, in texts and names of all record types."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from sqlalchemy import text

from rag_assets.privacy.described import find_described_spans
from tests.installation import Installation
from tests.integration.systems.workspace.site import Site, workspace

RUN = "Q7wERtYuIoPaSdFgHjKl"
SECRETS = {
    "described-sk": f"sk-{RUN}1",
    "described-ghp": f"ghp_{RUN}2",
    "described-akia": "AKIAZQ3WX5CV7BN9MK2L",
    "described-jwt": "eyJhbGciOiJub25lIn0.eyJzdWIiOiJhIn0.c2ln",
    "described-slack": "xoxb-",
    "described-rsa": "zz BEGIN RSA zz",
}
KEPT = {f"rag_catalog.{name}" for name in ("source_records", "record_texts", "held_records")}
"""Tables with originals, as documented."""
TEXTS = """
SELECT table_schema, table_name, column_name FROM information_schema.columns
WHERE table_schema NOT IN ('pg_catalog', 'information_schema')
AND data_type IN ('text', 'character varying', 'json', 'jsonb', 'ARRAY', 'bytea')
"""


@pytest.fixture(scope="module")
def site(shared_installation: Installation) -> Iterator[Site]:
    with workspace(shared_installation, "leaks") as made:
        made.grant("p")
        yield made


def bodies(rule: str, secret: str) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Yield records of all types with a credential in their texts, titles and names."""
    before, after = f"Before {rule}.\n\n", f"\n\nAfter {rule}."
    words = f"{before}{secret}{after}"
    block = {"block_id": "b", "type": "paragraph", "text": words}
    yield "page", f"p-{rule}", {"title": f"Title {secret}", "blocks": [block]}
    yield "comment", f"c-{rule}", {"page_uuid": "p", "text": words}
    yield "file", f"f-{rule}", {"page_uuid": "p", "name": f"name {secret}.md"}
    payload = {"deep": [{"text": secret}]}
    yield "template", f"t-{rule}", {"name": f"T {secret}", "description": words, "payload": payload}
    values = [{"name": "Note", "value_text": words}]
    yield "db_row", f"r-{rule}", {"database_uuid": "p", "values": values}
    change = {"page_uuid": f"p-{rule}", "block": {**block, "block_id": "b2"}}
    yield "block", "b2", change


def test_nothing_but_originals_holds_one_of_the_six(site: Site) -> None:
    for rule, secret in SECRETS.items():
        assert [span.rule for span in find_described_spans(f"a {secret} b")][:1] == [rule]
        for source_type, source_id, body in bodies(rule, secret):
            site.put(source_type, source_id, body)
        content = f"# File\n\nBefore {rule}.\n\n{secret}\n\nAfter {rule}.\n"
        assert site.put_content(f"f-{rule}", content.encode()).status_code == 202
    site.grant(*(f"p-{rule}" for rule in SECRETS))
    site.sync()
    stores = {"index": entries(site), **tables(site), **files(site)}
    found = {(store, rule) for store, held in stores.items() for rule in rules_in(held)}
    assert found == set()
    events = site.catalog.events.latest(site.id, kind="secret_dropped", limit=1_000)
    dropped = {(e.payload["type"], e.payload["rule"]) for e in events if "chunk" in e.payload}
    types = {"page", "comment", "file", "template", "db_row"}
    missing = {(kind, rule) for kind in types for rule in SECRETS} - dropped
    assert missing == set()
    assert all(e.payload["id"] and e.payload["source"] == "pushed" for e in events)


def rules_in(held: str) -> Iterator[str]:
    """Yield the rules whose credentials are in a text."""
    return (rule for rule, secret in SECRETS.items() if secret in held)


def tables(site: Site) -> dict[str, str]:
    """Return all database text except originals, by column, also of Dagster and of systems."""
    parts: dict[str, str] = {}
    with site.catalog.database.begin() as connection:
        for schema, table, column in connection.execute(text(TEXTS)).all():
            if f"{schema}.{table}" not in KEPT:
                query = text(f'SELECT "{column}"::text FROM "{schema}"."{table}"')  # noqa: S608
                held = map(str, connection.execute(query).scalars())
                parts[f"{schema}.{table}.{column}"] = "\n".join(held)
    assert "rag_catalog.documents.title" in parts
    return parts


def entries(site: Site) -> str:
    """Return all entries of the index."""
    ctx = site.installation.context(site.id)
    serving = ctx.catalog.generations.serving(site.id)
    assert serving is not None
    stored = ctx.store.entries.stored(serving.index_name, ctx.owner(serving))
    found = "\n".join(str(entry.fields) for entry in stored)
    assert "Before described-sk" in found, "what is beside a credential is found"
    return found


def files(site: Site) -> dict[str, str]:
    """Return the contents of the installation's folder, except originals."""
    local = Path(site.driver.session.settings.local)
    # These hold originals, and the compiled rules that find credentials.
    kept = {"blobs", "cache"}
    held = [path for path in local.rglob("*") if path.is_file() and kept.isdisjoint(path.parts)]
    return {str(path): _content(path) for path in held}


def _content(path: Path) -> str:
    if path.suffix == ".parquet":
        return str(pl.read_parquet(path).to_dicts())
    return path.read_bytes().decode("latin-1")
