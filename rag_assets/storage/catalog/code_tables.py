"""Tables of source code: what definitions are, which there are, and what they state of others."""

from __future__ import annotations

from sqlalchemy import (
    ARRAY,
    REAL,
    BigInteger,
    Boolean,
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

from rag_assets.storage.catalog.columns import json_column, metadata, tenant_column

NAME_MARKS = "_-?!$="
"""Characters that may be left out of a name when it is looked for."""


def last_part(short: ColumnElement[str], without: str = NAME_MARKS) -> ColumnElement[str]:
    """Return the part of a name after its last dot, without some characters."""
    # Constants instead of parameters: an index is used only for the expression that it is made of.
    part = func.regexp_replace(short, literal_column("'^.*[.]'"), literal_column("''"))
    return func.translate(part, literal_column(f"'{without}'"), literal_column("''"))


# What the definitions of source code are, as other files decide it: a source type by name.
document_kinds = Table(
    "document_kinds",
    metadata,
    Column("tenant", Text, primary_key=True),
    Column("document_id", Text, primary_key=True),
    json_column("kinds"),
    ForeignKeyConstraint(
        ["tenant", "document_id"],
        ["documents.tenant", "documents.document_id"],
        ondelete="CASCADE",
    ),
)

# Both of one text, by its chunk set: of a version that some build has, and of no other. A trigger
# on document_index deletes them with the last row that names the chunk set.
symbols = Table(
    "symbols",
    metadata,
    tenant_column(),
    Column("chunk_set_key", Text, primary_key=True),
    Column("position", Integer, primary_key=True),
    Column("symbol", Text, nullable=False),
    # As people call it: without its namespace, in lower case.
    Column("short", Text, nullable=False),
    Column("role", Text, nullable=False),
    Column("public", Boolean, nullable=False),
    # Of the text that is embedded for it; null where it has no chunk of its own.
    Column("content_hash", Text),
    Column("line_start", Integer, nullable=False),
    Column("line_end", Integer, nullable=False),
    Index(None, "tenant", "symbol"),
    Index(None, "tenant", "short"),
    Index("ix_symbols_tenant_last_part", "tenant", last_part(column("short", Text))),
)

edges = Table(
    "edges",
    metadata,
    tenant_column(),
    Column("chunk_set_key", Text, primary_key=True),
    Column("position", Integer, primary_key=True),
    Column("kind", Text, nullable=False),
    # Qualified names, or others with a prefix; the first is empty for the file itself.
    Column("stated_of", Text, nullable=False),
    Column("target", Text, nullable=False),
    Column("how", Text, nullable=False),
    Column("confidence", REAL, nullable=False),
    Column("line_start", Integer, nullable=False),
    Column("line_end", Integer, nullable=False),
    Column("evidence", Text, nullable=False),
    # Of the file that the evidence is in, within its repository; null where it is the text's own.
    Column("path", Text),
    Index(None, "tenant", "stated_of"),
    Index(None, "tenant", "target"),
)

# The names in a text with the places where it defines and uses them, in one row: a name is looked
# for by a number, which is made of it and of the tenant. Kept as symbols are.
name_uses = Table(
    "name_uses",
    metadata,
    tenant_column(),
    Column("chunk_set_key", Text, primary_key=True),
    Column("numbers", ARRAY(Integer), nullable=False),
    # See rag_assets.code.name_uses.
    Column("names", Text, nullable=False),
    Index("ix_name_uses_numbers", "numbers", postgresql_using="gin"),
)

# What follows from the documents of a source together, as records of another source.
derivations = Table(
    "derivations",
    metadata,
    tenant_column(),
    Column("source", Text, primary_key=True),
    # Of the documents that the present records follow from.
    Column("fingerprint", Text, nullable=False),
    # What may add to them and is not known: reasons with their places.
    json_column("unresolved", "[]"),
)

# What tells that relations may have changed, one row for each transaction that did: triggers write
# them. A number made at random stands for each, and their sum for a state: without a row that
# writers would wait for each other to change.
relation_changes = Table(
    "relation_changes",
    metadata,
    tenant_column(),
    Column("transaction", BigInteger, primary_key=True, autoincrement=False),
    # Whether rows of a text were made anew: others come with their text, and go with it.
    Column("of_rows", Boolean, primary_key=True),
    Column("nonce", BigInteger, nullable=False),
)

# The sums of former changes.
relation_change_totals = Table(
    "relation_change_totals",
    metadata,
    tenant_column(),
    Column("nonce", Numeric, nullable=False, server_default="0"),
    Column("rows_nonce", Numeric, nullable=False, server_default="0"),
)
