"""A sealed key opens only for the tenant, provider and master key for which it was sealed."""

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from pydantic import SecretStr

from rag_assets.billing.key_ring import seal, unseal
from rag_assets.billing.master_key import MasterKey
from rag_assets.common.errors import KeyUnreadable
from rag_assets.storage.catalog.accounts.credentials import SealedKey
from rag_assets.storage.catalog.database import TenantRef

MASTER = MasterKey.from_secret(bytes(range(32)))
names = st.text(max_size=40)
refs = st.builds(TenantRef, names, st.integers(0, 1 << 62))
secrets = st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=1, max_size=200)


def opens(master: MasterKey, ref: TenantRef, provider: str, sealed: SealedKey) -> bool:
    try:
        unseal(master, ref, provider, sealed)
    except KeyUnreadable:
        return False
    return True


@given(refs, names, secrets)
def test_it_opens_for_whom_it_was_sealed(ref: TenantRef, provider: str, secret: str) -> None:
    sealed = seal(MASTER, ref, provider, SecretStr(secret))
    assert unseal(MASTER, ref, provider, sealed).get_secret_value() == secret
    assert secret.encode() not in sealed.ciphertext or len(secret) < 3


@given(refs, names, refs, names)
def test_a_moved_row_stays_shut(
    ref: TenantRef, provider: str, other_ref: TenantRef, other: str
) -> None:
    assume((ref, provider) != (other_ref, other))
    assert not opens(MASTER, other_ref, other, seal(MASTER, ref, provider, SecretStr("k")))


@pytest.mark.parametrize(
    ("ref", "provider"),
    [
        (TenantRef("acme", 2), "openai"),
        (TenantRef("acme2", 1), "openai"),
        (TenantRef("acme", 1), "openai-compatible"),
        (TenantRef("acme1", 1), "openai"),
        (TenantRef('acme", 1, "x', 1), "openai"),
    ],
)
def test_neighbours_do_not_open_it(ref: TenantRef, provider: str) -> None:
    sealed = seal(MASTER, TenantRef("acme", 1), "openai", SecretStr("sk-1"))
    assert not opens(MASTER, ref, provider, sealed)


@given(secrets, st.data())
def test_not_a_bit_may_change(secret: str, data: st.DataObject) -> None:
    ref = TenantRef("acme", 1)
    sealed = seal(MASTER, ref, "openai", SecretStr(secret))
    whole = bytearray(sealed.nonce + sealed.ciphertext)
    bit = data.draw(st.integers(0, 8 * len(whole) - 1))
    whole[bit // 8] ^= 1 << bit % 8
    changed = SealedKey(bytes(whole[:12]), bytes(whole[12:]), MASTER.id)
    assert not opens(MASTER, ref, "openai", changed)
    cut = data.draw(st.integers(0, len(sealed.ciphertext) - 1))
    shorter = SealedKey(sealed.nonce, sealed.ciphertext[:cut], MASTER.id)
    assert not opens(MASTER, ref, "openai", shorter)


def test_another_master_key_does_not_open_it() -> None:
    ref = TenantRef("acme", 1)
    sealed = seal(MASTER, ref, "openai", SecretStr("sk-1"))
    assert not opens(MasterKey.random(), ref, "openai", sealed)


def test_one_key_sealed_twice_looks_different() -> None:
    ref = TenantRef("acme", 1)
    first, second = (seal(MASTER, ref, "openai", SecretStr("sk-1")) for _ in range(2))
    assert first.nonce != second.nonce
    assert first.ciphertext != second.ciphertext
