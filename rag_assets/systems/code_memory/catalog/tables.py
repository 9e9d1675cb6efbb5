"""Tables of code memory: runs, kinds of definitions, relations, names and derived documents."""

from __future__ import annotations

from sqlalchemy import (
    ARRAY,
    REAL,
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    ColumnElement,
    ForeignKeyConstraint,
    Index,
    Integer,
    Numeric,
    Table,
    Text,
    column,
    func,
    literal_column,
)

from rag_assets.storage.catalog.tables import json_column, metadata, now_column, tenant_column

code_runs = Table(
    "code_runs",
    metadata,
    tenant_column(),
    Column("run_id", Text, primary_key=True),
    Column("rag_enabled", Boolean, nullable=False),
    # The language model that the run prompts; null if unknown.
    Column("model", Text),
    Column("updated_by", Text),
    now_column("updated_at"),
)
"""Runs of agents in a project's repositories."""

code_run_events = Table(
    "code_run_events",
    metadata,
    tenant_column(),
    Column("run_id", Text, primary_key=True),
    Column("external_id", Text, primary_key=True),
    Column("kind", Text, nullable=False),
    Column("document_id", Text, nullable=False),
    now_column("received_at"),
    ForeignKeyConstraint(
        ["tenant", "run_id"], ["code_runs.tenant", "code_runs.run_id"], ondelete="CASCADE"
    ),
    CheckConstraint(
        "kind IN ('file_created', 'file_updated', 'file_deleted', 'final_summary')", name="kind"
    ),
)
"""Received events without their contents; a repeated event is recognized by its row."""


NAME_MARKS = "_-?!$="
"""Characters that a user may leave out when searching for a name."""


def select_last_part(short: ColumnElement[str], without: str = NAME_MARKS) -> ColumnElement[str]:
    """Return the part of a name after its last dot, without the characters in `without`."""
    # Constants instead of parameters: Postgres uses an index only for its exact expression.
    part = func.regexp_replace(short, literal_column("'^.*[.]'"), literal_column("''"))
    return func.translate(part, literal_column(f"'{without}'"), literal_column("''"))


document_kinds = Table(
    "document_kinds",
    metadata,
    Column("tenant", Text, primary_key=True),
    Column("document_id", Text, primary_key=True),
    json_column("kinds"),
    ForeignKeyConstraint(
        ["tenant", "document_id"], ["documents.tenant", "documents.document_id"], ondelete="CASCADE"
    ),
)
"""Source types of a document's definitions, by name, as far as other files decide them."""

symbols = Table(
    "symbols",
    metadata,
    tenant_column(),
    Column("chunk_set_key", Text, primary_key=True),
    Column("position", Integer, primary_key=True),
    Column("symbol", Text, nullable=False),
    # The name as people write it: in lower case, without its namespace.
    Column("short", Text, nullable=False),
    Column("role", Text, nullable=False),
    Column("public", Boolean, nullable=False),
    # Hash of the text that is embedded for it; null if it has no separate chunk.
    Column("content_hash", Text),
    Column("line_start", Integer, nullable=False),
    Column("line_end", Integer, nullable=False),
    Index(None, "tenant", "symbol"),
    Index(None, "tenant", "short"),
    Index("ix_symbols_tenant_last_part", "tenant", select_last_part(column("short", Text))),
)
"""Definitions in a text, by its chunk set.

Symbols and edges are kept while a build has a version of the text: a trigger on `document_index`
deletes them with the last row that names the chunk set.
"""

edges = Table(
    "edges",
    metadata,
    tenant_column(),
    Column("chunk_set_key", Text, primary_key=True),
    Column("position", Integer, primary_key=True),
    Column("kind", Text, nullable=False),
    # Qualified names, or other names with a prefix; `stated_of` is empty if the file itself states
    # the edge.
    Column("stated_of", Text, nullable=False),
    Column("target", Text, nullable=False),
    Column("how", Text, nullable=False),
    Column("confidence", REAL, nullable=False),
    Column("line_start", Integer, nullable=False),
    Column("line_end", Integer, nullable=False),
    Column("evidence", Text, nullable=False),
    # Path within the repository of the file with the evidence; null for the text's own file.
    Column("path", Text),
    Index(None, "tenant", "stated_of"),
    Index(None, "tenant", "target"),
)
"""Relations that a text states, by its chunk set."""

name_uses = Table(
    "name_uses",
    metadata,
    tenant_column(),
    Column("chunk_set_key", Text, primary_key=True),
    Column("numbers", ARRAY(Integer), nullable=False),
    # See symbols.name_uses.
    Column("names", Text, nullable=False),
    Index("ix_name_uses_numbers", "numbers", postgresql_using="gin"),
)
"""The names in a text, with the places that define and use them, in one row.

Searches look for a number that is computed from the name and the tenant. Rows are kept as long as
symbols.
"""

derivations = Table(
    "derivations",
    metadata,
    tenant_column(),
    Column("source", Text, primary_key=True),
    # Fingerprint of the documents from which the current records were derived.
    Column("fingerprint", Text, nullable=False),
    # Unresolved statements that may add to the records: reasons with their places.
    json_column("unresolved", "[]"),
)
"""The state of derived documents: records that follow from all documents of another source."""

relation_changes = Table(
    "relation_changes",
    metadata,
    tenant_column(),
    Column("transaction", BigInteger, primary_key=True, autoincrement=False),
    # Whether rows of a text were recorded again; other rows are added and deleted with their text.
    Column("of_rows", Boolean, primary_key=True),
    Column("nonce", BigInteger, nullable=False),
)
"""Possible changes of relations: triggers write one row for each transaction, with a random number.

The sum of all numbers identifies a state. With a single shared row, writers would wait for each
other.
"""

relation_change_totals = Table(
    "relation_change_totals",
    metadata,
    tenant_column(),
    Column("nonce", Numeric, nullable=False, server_default="0"),
    Column("rows_nonce", Numeric, nullable=False, server_default="0"),
)
"""The sums of the random numbers of former changes."""
