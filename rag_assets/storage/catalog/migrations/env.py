"""Alembic's entry point: runs the migrations on the connection in its configuration."""

from alembic import context

# Imported because its modules add their tables to the metadata.
from rag_assets.storage.catalog import catalog  # noqa: F401
from rag_assets.storage.catalog.tables import SCHEMA, metadata

context.configure(
    connection=context.config.attributes["connection"],
    version_table=context.config.attributes.get("version_table", "alembic_version"),
    target_metadata=metadata,
    version_table_schema=SCHEMA,
    include_schemas=True,
    include_name=lambda name, kind, _: kind != "schema" or name == SCHEMA,
)
with context.begin_transaction():
    context.run_migrations()
