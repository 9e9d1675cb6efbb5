"""Tables of judged questions, and of the question vectors that evaluations keep."""

from __future__ import annotations

from sqlalchemy import ARRAY, Boolean, Column, LargeBinary, SmallInteger, Table, Text, text

from rag_assets.storage.catalog.columns import json_column, metadata, now_column, tenant_column

judged_questions = Table(
    "judged_questions",
    metadata,
    tenant_column(),
    Column("question_id", Text, primary_key=True),
    Column("question", Text, nullable=False),
    Column("kind", Text, nullable=False, server_default=""),
    # The lowest grade that counts as found.
    Column("relevant_from", SmallInteger, nullable=False),
    # Made from a document's headings, and not judged by a person.
    Column("synthetic", Boolean, nullable=False, server_default=text("false")),
    json_column("judgements", "[]"),
    # Hashes of the passages that were read for the question.
    Column("pool", ARRAY(Text), nullable=False, server_default="{}"),
    now_column("judged_at"),
)

question_vectors = Table(
    "question_vectors",
    metadata,
    tenant_column(),
    Column("embedder_id", Text, primary_key=True),
    Column("question_sha256", Text, primary_key=True),
    # Packed little-endian float32.
    Column("vector", LargeBinary, nullable=False),
    now_column("embedded_at"),
)
