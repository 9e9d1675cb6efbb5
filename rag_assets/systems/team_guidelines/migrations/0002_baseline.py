"""Create the tables of team guidelines. Older revisions were in no release."""

from collections.abc import Sequence
from pathlib import Path

from alembic import op

from rag_assets.storage.catalog.migrate import run_script

revision: str = "0002"
down_revision: str | None = None
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None


def upgrade() -> None:
    run_script(op.get_bind(), Path(__file__).with_suffix(".sql"))
