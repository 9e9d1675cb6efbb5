import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_assets.api.upload_routes import UploadForm
from rag_assets.common.errors import UploadRefused

TYPE = "multipart/form-data; boundary=bound"
FIELDS = frozenset({"replaces"})


def part(disposition: str, content: bytes) -> bytes:
    return f"--bound\r\nContent-Disposition: form-data; {disposition}\r\n\r\n".encode() + (
        content + b"\r\n"
    )


def form_of(*parts: bytes) -> bytes:
    return b"".join(parts) + b"--bound--\r\n"


def parsed(body: bytes, *cuts: int, content_type: str = TYPE) -> tuple[UploadForm, bytes]:
    form, content = UploadForm(content_type, FIELDS), b""
    for begin, end in zip((0, *cuts), (*cuts, len(body)), strict=True):
        content += b"".join(form.feed(body[begin:end]))
    return form, content


FILE = part('name="file"; filename="a b.md"', b"the\r\n--boun content")
REPLACES = part('name="replaces"', b"an id")


@given(st.lists(st.integers(0, len(form_of(REPLACES, FILE)))))
def test_a_form_means_the_same_in_all_pieces(cuts: list[int]) -> None:
    form, content = parsed(form_of(REPLACES, FILE), *sorted(cuts))
    assert form.finish() == "a b.md"
    assert content == b"the\r\n--boun content"
    assert form.values == {"replaces": "an id"}


@given(st.binary(max_size=300))
def test_every_content_comes_through(content: bytes) -> None:
    if b"\r\n--bound" in b"\r\n" + content:
        return
    form, found = parsed(form_of(part('name="file"; filename="x"', content)))
    assert (form.finish(), found) == ("x", content)


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (form_of(REPLACES), "does not contain a file"),
        (form_of(FILE, FILE), "several files"),
        (form_of(part('name="other"; filename="x"', b"")), "must be named"),
        (form_of(part('name="tenant"', b"umbrella"), FILE), "unknown"),
        (form_of(REPLACES, REPLACES, FILE), "repeated"),
        (form_of(part('name="replaces"', b"x" * 2_000), FILE), "too long"),
        (FILE, "is incomplete"),
        (b"no form at all", "cannot be read"),
        (b"--bound\r\n" + b"a: b\r\n" * 1_000, "cannot be read"),
        (b"--bound\r\na: " + b"b" * 100_000, "cannot be read"),
        (b"", "is incomplete"),
    ],
)
def test_what_is_no_form_with_one_file_is_refused(body: bytes, reason: str) -> None:
    with pytest.raises(UploadRefused, match=reason):
        parsed(body)[0].finish()


@pytest.mark.parametrize(
    "content_type", ["", "application/json", "multipart/form-data", TYPE.replace("form-data", "x")]
)
def test_a_request_without_a_form_is_refused_before_its_body(content_type: str) -> None:
    with pytest.raises(UploadRefused, match="not a form"):
        UploadForm(content_type, FIELDS)


def test_a_boundary_longer_than_any_is_refused() -> None:
    with pytest.raises(UploadRefused, match="cannot be read"):
        UploadForm(f"multipart/form-data; boundary={'b' * 5_000}", FIELDS)


def test_a_name_may_hold_any_bytes() -> None:
    raw = b'--bound\r\nContent-Disposition: form-data; name="file"; filename="\xff\xe2\x82\xac"'
    form, _ = parsed(raw + b"\r\n\r\nx\r\n--bound--\r\n")
    assert form.finish() == "\ufffd\u20ac"
