"""Sessions of the panel: started with a one-time code or a token, and stored as hashes.

All times come from Postgres, so that all workers agree on them.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import sqlalchemy as sa

from rag_assets.common.clock import MAX_SKEW
from rag_assets.storage.catalog.accounts.tables import panel_codes, panel_sessions
from rag_assets.storage.catalog.database import CatalogQueries, TenantRef, read_row
from rag_assets.storage.catalog.installation.clock import select_latest_trusted_time
from rag_assets.storage.catalog.tables import tenants

CODE_LIFETIME = timedelta(seconds=60)
SESSION_LIFETIME = timedelta(hours=8)
IDLE_TIME = timedelta(minutes=30)
"""Time after which an unused session ends."""
RECENT_TIME = timedelta(minutes=10)
"""Time after its start during which a session may change credentials."""


@dataclass(frozen=True, slots=True)
class TokenHolder:
    """The owner of the token that started a session.

    Attributes:
        name: the token's name, in logs and as the author of changes; not a secret.
        token_id: id of the service token; revoking it ends the session. None for a JWT or the
            operator.
    """

    name: str
    principals: tuple[str, ...] = ()
    token_id: str | None = None
    token_expires_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class PanelSession:
    """A session of the panel; for a code, the session that the code would start.

    Attributes:
        created_at, used_at: when it was started and last used; a code has no last use.
        is_recent: whether it was started within RECENT_TIME.
    """

    tenant: TenantRef
    profile: str
    organization: str | None
    project: str | None
    name: str
    principals: tuple[str, ...]
    created_at: datetime
    used_at: datetime | None
    expires_at: datetime
    is_recent: bool


class PanelSessionTable(CatalogQueries):
    """Starts, finds and ends sessions of the panel, in `panel_sessions` and `panel_codes`."""

    def add_code(self, ref: TenantRef, sha256: bytes, holder: TokenHolder) -> datetime:
        """Store the hash of a code that starts one session; return when the code expires."""
        values = {
            **_build_holder_values(ref, holder),
            "code_sha256": sha256,
            "expires_at": sa.func.now() + CODE_LIFETIME,
            "token_expires_at": holder.token_expires_at,
        }
        with self._database.begin_tenant(ref) as connection:
            _forget_expired(connection, panel_codes)
            query = sa.insert(panel_codes).values(values).returning(panel_codes.c.expires_at)
            expires_at: datetime = connection.execute(query).scalar_one()
        return expires_at

    def find_code(self, sha256: bytes) -> PanelSession | None:
        """Return the session that a valid code would start; the code stays usable."""
        query = _select_with_tenants(panel_codes).where(
            panel_codes.c.code_sha256 == sha256, _is_current(panel_codes)
        )
        row = self._database.fetch_row(query)
        return _read_session(row) if row else None

    def redeem(self, code_sha256: bytes, session_sha256: bytes) -> bool:
        """Start the session of a code, which is then used up; return whether the code was valid."""
        columns = panel_codes.c
        used_up = sa.delete(panel_codes).where(
            columns.code_sha256 == code_sha256, _is_current(panel_codes)
        )
        with self._database.begin() as connection:
            code = connection.execute(used_up.returning(panel_codes)).first()
            if code is None:
                return False
            session_columns = (columns.tenant, columns.name, columns.principals, columns.token_id)
            values = {column.name: getattr(code, column.name) for column in session_columns}
            _insert_session(connection, session_sha256, values, code.token_expires_at)
        return True

    def begin(self, ref: TenantRef, session_sha256: bytes, holder: TokenHolder) -> None:
        """Start a session for the holder of a token."""
        with self._database.begin_tenant(ref) as connection:
            _insert_session(
                connection,
                session_sha256,
                _build_holder_values(ref, holder),
                holder.token_expires_at,
            )

    def find(self, sha256: bytes, *, use: bool) -> PanelSession | None:
        """Return the session with that hash, if it has not ended.

        Args:
            use: whether to count this as a use, which restarts the idle time.
        """
        columns = panel_sessions.c
        valid = (columns.session_sha256 == sha256, _has_not_ended())
        used = sa.update(panel_sessions).where(*valid).values(used_at=sa.func.now())
        with self._database.begin() as connection:
            if use and not connection.execute(used).rowcount:
                return None
            row = connection.execute(_select_with_tenants(panel_sessions).where(*valid)).first()
        return _read_session(row) if row else None

    def list_others(self, sha256: bytes) -> list[PanelSession]:
        """Return the other sessions of the same token or person in the same organization."""
        query = _select_with_tenants(panel_sessions).where(
            _is_other_session(sha256), _has_not_ended()
        )
        rows = self._database.fetch_rows(query.order_by(panel_sessions.c.used_at.desc()))
        return [_read_session(row) for row in rows]

    def end_others(self, sha256: bytes) -> int:
        """End the other sessions and unused codes of a session's holder; return how many ended."""
        with self._database.begin() as connection:
            # Delete codes first: a code that was redeemed in the meantime has become a session.
            connection.execute(sa.delete(panel_codes).where(_is_other_session(sha256, panel_codes)))
            return connection.execute(
                sa.delete(panel_sessions).where(_is_other_session(sha256))
            ).rowcount

    def end_all(self) -> None:
        """End all sessions and invalidate all codes."""
        with self._database.begin() as connection:
            for table in (panel_sessions, panel_codes):
                connection.execute(sa.delete(table))

    def end(self, sha256: bytes) -> None:
        """End the session whose secret has this hash."""
        ended = sa.delete(panel_sessions).where(panel_sessions.c.session_sha256 == sha256)
        with self._database.begin() as connection:
            connection.execute(ended)


def _insert_session(
    connection: sa.Connection,
    sha256: bytes,
    values: dict[str, Any],
    token_expires_at: datetime | None,
) -> None:
    _forget_expired(connection, panel_sessions)
    latest = sa.func.now() + SESSION_LIFETIME
    ends = latest if token_expires_at is None else sa.func.least(latest, token_expires_at)
    row = {**values, "session_sha256": sha256, "expires_at": ends}
    connection.execute(sa.insert(panel_sessions).values(row))


def _build_holder_values(ref: TenantRef, holder: TokenHolder) -> dict[str, Any]:
    return {
        "tenant": ref.id,
        "name": holder.name,
        "principals": list(holder.principals),
        "token_id": holder.token_id,
    }


def _is_current(table: sa.Table) -> sa.ColumnElement[bool]:
    """Return the SQL condition that a code or session has not expired.

    A code or session that was created at a future time, while the clock was fast, counts as
    expired. Otherwise it would last until that time.
    """
    now = sa.func.now()
    return sa.and_(table.c.expires_at > now, table.c.created_at < now + MAX_SKEW)


def _has_not_ended() -> sa.ColumnElement[bool]:
    used_at = panel_sessions.c.used_at
    return sa.and_(_is_current(panel_sessions), used_at > sa.func.now() - IDLE_TIME)


def _is_other_session(sha256: bytes, table: sa.Table = panel_sessions) -> sa.ColumnElement[bool]:
    """Return the SQL condition for the other sessions, or the codes, of a session's holder.

    Only sessions in the same tenant or organization count, because two organizations may each have
    a person of the same name.
    """
    mine, its_tenant = panel_sessions.alias("mine"), tenants.alias("its_tenant")
    others_tenant = tenants.alias("others_tenant")
    is_mine = sa.exists(
        sa.select(mine.c.tenant)
        .join(its_tenant, its_tenant.c.id == mine.c.tenant)
        .join(others_tenant, others_tenant.c.id == table.c.tenant)
        .where(
            mine.c.session_sha256 == sha256,
            mine.c.name == table.c.name,
            mine.c.token_id.is_not_distinct_from(table.c.token_id),
            sa.or_(
                its_tenant.c.id == others_tenant.c.id,
                its_tenant.c.organization == others_tenant.c.organization,
            ),
        )
        .correlate(table)
    )
    if table is panel_codes:
        return is_mine
    return sa.and_(is_mine, panel_sessions.c.session_sha256 != sha256)


def _forget_expired(connection: sa.Connection, table: sa.Table) -> None:
    connection.execute(sa.delete(table).where(table.c.expires_at < select_latest_trusted_time()))


def _select_with_tenants(table: sa.Table) -> sa.Select[Any]:
    owner = tenants.c
    return (
        sa.select(
            table,
            (table.c.created_at > sa.func.now() - RECENT_TIME).label("is_recent"),
            *(owner.incarnation, owner.profile, owner.organization, owner.project),
        )
        .join(tenants, owner.id == table.c.tenant)
        .where(owner.state != "REMOVING")
    )


def _read_session(row: sa.Row[Any]) -> PanelSession:
    return read_row(
        PanelSession,
        row,
        tenant=TenantRef(row.tenant, row.incarnation),
        principals=tuple(row.principals),
        used_at=getattr(row, "used_at", None),
    )
