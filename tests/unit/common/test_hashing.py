import hashlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_assets.common.hashing import HashRange, compute_key, sha256_hex

scalars = st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=3)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner),
    max_leaves=6,
)


def test_a_text_is_hashed_as_its_utf8() -> None:
    assert sha256_hex("ä") == sha256_hex("ä".encode()) == hashlib.sha256(b"\xc3\xa4").hexdigest()


def test_a_file_name_that_is_no_utf8_is_hashed_as_its_bytes() -> None:
    assert sha256_hex(b"\xff".decode("utf-8", "surrogateescape")) == sha256_hex(b"\xff")


def test_keys_are_the_same_on_every_machine() -> None:
    # Written down: another value here would have every installation work everything off again.
    key = compute_key("parse", "abc", None, 1, {"b": 2, "a": [True]})
    assert key == "e71bd9539caeb2640b8a2781c1000c8b"


@pytest.mark.slow
@given(mapping=st.dictionaries(st.text(max_size=3), scalars, max_size=4))
def test_the_order_of_a_mapping_does_not_count(mapping: dict[str, Any]) -> None:
    backwards = dict(reversed(list(mapping.items())))
    assert compute_key("kind", mapping) == compute_key("kind", backwards)


@pytest.mark.slow
@given(one=st.lists(values, max_size=3), other=st.lists(values, max_size=3))
def test_only_equal_parts_have_equal_keys(one: list[Any], other: list[Any]) -> None:
    # 1 and True are equal to Python, and different here.
    are_equal = compute_key("kind", *one) == compute_key("kind", *other)
    assert are_equal == (repr_of(one) == repr_of(other))
    assert compute_key("kind", *one) != compute_key("other kind", *one)


def repr_of(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ",".join(f"{k!r}:{repr_of(value[k])}" for k in sorted(value)) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(repr_of, value)) + "]"
    return repr(value)


def test_parts_of_a_range_hold_each_hash_once_and_about_as_many() -> None:
    hashes = [sha256_hex(str(n)) for n in range(2_000)]
    parts = HashRange().parts(7)
    assert [HashRange.part(n, 7) for n in range(7)] == parts
    assert all(sum(one in part for part in parts) == 1 for one in hashes)
    assert all(200 < sum(one in part for one in hashes) < 370 for part in parts)
    inner = parts[3].parts(2)
    assert all((one in parts[3]) == (one in inner[0] or one in inner[1]) for one in hashes)
    assert HashRange().parts(1) == [HashRange()]
    assert 5 not in HashRange()
