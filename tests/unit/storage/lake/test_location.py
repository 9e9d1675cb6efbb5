import uuid
from pathlib import Path

import pytest

from rag_assets.common.errors import ConfigurationError
from rag_assets.common.tenant_folders import tenant_folder
from rag_assets.storage.lake.location import Location, build_embedder_slug


@pytest.mark.parametrize(
    "tenant",
    ["", ".", "..", "../b", "a/b", "a\\b", "a..b", "a.", "-a", "A", "ä", "a\n", "a b", "١",
     "a" * 64],
)  # fmt: skip
def test_a_tenant_id_that_could_escape_its_folder_is_rejected(tenant: str) -> None:
    with pytest.raises(ConfigurationError):
        tenant_folder(tenant, 1)


@pytest.mark.parametrize("incarnation", [-1, True, "1/../..", 1.0, None])
def test_an_incarnation_must_be_a_number(incarnation: object) -> None:
    with pytest.raises(ConfigurationError):
        tenant_folder("acme", incarnation)  # type: ignore[arg-type]


def test_a_valid_tenant_has_its_folder() -> None:
    assert tenant_folder("a0.b-c_d", 12) == "a0.b-c_d/12"


@pytest.mark.parametrize("name", ["..", "a/../b", "/etc", "a//b", ""])
def test_no_folder_name_escapes_the_lake(name: str) -> None:
    with pytest.raises(ConfigurationError):
        Location.parse("lake") / name


@pytest.mark.parametrize("embedder", ["../../x", "", "/", "Ä" * 100, "a/b@3", "x" * 500])
def test_an_embedder_has_one_plain_folder(embedder: str) -> None:
    slug = build_embedder_slug(embedder)
    assert (Location.parse("lake") / slug).url.endswith(f"/lake/{slug}")
    assert len(slug) < 64
    assert slug != build_embedder_slug(embedder + ".")


def test_addresses(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", "/home/me")
    assert Location.parse("lake/").url == f"{tmp_path}/lake"
    assert Location.parse("~/lake").url == "/home/me/lake"
    assert Location.parse("file:///var/lake").url == "/var/lake"
    assert Location.parse("s3://bucket/lake/").url == "s3://bucket/lake"
    assert not Location.parse("s3://bucket").is_local
    for unusable in ("", "/a[b]", "/a|b", "/a^b", "/a%41b", "/a\\b"):
        with pytest.raises(ConfigurationError):
            Location.parse(unusable)


def test_folders_of_an_object_store_are_listed_and_deleted() -> None:
    import fsspec

    root = f"memory://{uuid.uuid4().hex}"
    store = fsspec.filesystem("memory")
    for name in ("acme/1/parsed_text/x", "acme/2/y", "other/1/z", "not ours/1/z"):
        store.pipe(f"{root.removeprefix('memory:/')}/{name}", b"x")
    lake = Location.parse(root)
    assert list(lake.folders()) == ["acme", "other"]
    (lake / "acme/1").remove()
    (lake / "acme/1").remove()
    assert list((lake / "acme").folders()) == ["2"]
    assert list((lake / "nobody").folders()) == []


def test_a_missing_object_store_package_is_named() -> None:
    with pytest.raises(ConfigurationError, match="s3") as caught:
        list(Location.parse("s3://bucket/lake").folders())
    assert "s3fs" in (caught.value.hint or "")


def test_deletion_follows_no_symbolic_link(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "kept").write_text("x")
    lake = tmp_path / "lake"
    (lake / "acme").mkdir(parents=True)
    (lake / "acme" / "1").symlink_to(outside)
    with pytest.raises(OSError, match="symbolic link"):
        (Location.parse(str(lake)) / "acme/1").remove()
    assert (outside / "kept").exists()
