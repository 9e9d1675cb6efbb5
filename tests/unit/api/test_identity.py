"""Concurrent requests share one lookup of a token, but never one that started too early."""

import asyncio
from typing import cast

import pytest

from rag_assets.api.identity import TokenLookups, create_token
from rag_assets.common.errors import ConfigurationError, InvalidRequest, ServiceUnavailable
from rag_assets.common.principals import GUESTS
from rag_assets.storage.catalog.accounts.credentials import KeyOwner, ServiceToken, TokenReader
from rag_assets.storage.catalog.catalog import Catalog


class Slow:
    """Returns the value at the start of a statement, as Postgres does."""

    def __init__(self) -> None:
        self.token: str | None = "token"
        self.statements = 0
        self.fails = False

    async def find(self, _: bytes) -> ServiceToken | None:
        self.statements += 1
        seen = self.token
        await asyncio.sleep(0.01)
        if self.fails:
            raise ServiceUnavailable("Postgres does not answer", hint="start it")
        return cast("ServiceToken | None", seen)


def test_concurrent_callers_share_a_look_up() -> None:
    async def run() -> int:
        slow = Slow()
        lookups = TokenLookups(cast("TokenReader", slow))
        found = await asyncio.gather(*(lookups.find(b"a") for _ in range(100)))
        assert found == ["token"] * 100
        return slow.statements

    assert asyncio.run(run()) <= 2


def test_a_look_up_after_a_revocation_sees_it() -> None:
    async def run() -> None:
        slow = Slow()
        lookups = TokenLookups(cast("TokenReader", slow))
        before = asyncio.create_task(lookups.find(b"a"))
        await asyncio.sleep(0.005)
        slow.token = None
        assert await lookups.find(b"a") is None
        assert await before == "token"

    asyncio.run(run())


def test_a_failed_lookup_reaches_all_waiters_and_is_not_cached() -> None:
    async def run() -> None:
        slow = Slow()
        slow.fails = True
        lookups = TokenLookups(cast("TokenReader", slow))
        results = await asyncio.gather(
            *(lookups.find(b"a") for _ in range(3)), return_exceptions=True
        )
        assert all(isinstance(result, ServiceUnavailable) for result in results)
        slow.fails = False
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(lookups.find(b"a"), 0.001)
        assert cast("object", await lookups.find(b"a")) == "token"

    asyncio.run(run())


@pytest.mark.parametrize(
    ("principal", "error", "message"),
    [
        (GUESTS, ConfigurationError, rf"the names .*{GUESTS}.* are reserved"),
        ("", InvalidRequest, r"principals\.1"),
        ("a\0", InvalidRequest, r"principals\.1"),
        ("\udce9", InvalidRequest, r"principals\.1"),
    ],
    ids=["reserved", "empty", "NUL", "surrogate"],
)
def test_a_bad_principal_is_refused(principal: str, error: type[Exception], message: str) -> None:
    catalog, owner = cast("Catalog", None), cast("KeyOwner", None)
    with pytest.raises(error, match=message):
        create_token(catalog, owner, role="member", principals=["ada", principal], lifetime=None)
