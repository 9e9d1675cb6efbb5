"""Create the catalog's tables. Older revisions were in no release."""

import secrets
from collections.abc import Sequence
from pathlib import Path

import sqlalchemy as sa
from alembic import op

from rag_assets.storage.catalog.migrate import run_script

revision: str = "0059"
down_revision: str | None = None
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None


def upgrade() -> None:
    connection = op.get_bind()
    run_script(connection, Path(__file__).with_suffix(".sql"))
    key = sa.text("INSERT INTO rag_catalog.receipt_keys (id, key) VALUES (1, :key)")
    connection.execute(key, {"key": secrets.token_bytes(32)})
