from dataclasses import replace

import pytest

from rag_assets.ingest.sources.model import NO_METADATA, ListedDocument, SourceMetadata, build_uri
from rag_assets.pipeline.listing import ListingPace, MaskedNames
from rag_assets.privacy.masker import Masker
from tests.rules import shared_scanner

TOKEN = "ghp_" + "aB3dE5fG7hJ9kL1mN3pQ5rS7tU9vW1xY3zA5"


@pytest.fixture(scope="module")
def names() -> MaskedNames:
    return MaskedNames([], Masker(shared_scanner()))


@pytest.mark.slow
def test_a_credential_is_masked_in_all_metadata_of_a_source(names: MaskedNames) -> None:
    metadata = SourceMetadata(
        title=f"Token {TOKEN}",
        tags=("plain", TOKEN),
        metadata={"owner": "ada", "floor": 3, "token": TOKEN, "more": ["x", TOKEN]},
    )
    shown = names.mask_metadata(metadata)
    assert TOKEN not in repr(shown)
    assert shown.tags[0] == "plain"
    assert (shown.metadata["owner"], shown.metadata["floor"]) == ("ada", 3)
    assert shown.metadata["more"][0] == "x"
    assert names.mask_metadata(NO_METADATA) is NO_METADATA


def test_a_uri_that_a_source_gives_goes_before_the_one_that_is_known(names: MaskedNames) -> None:
    metadata = SourceMetadata(uri=f"https://wiki.example/?key={TOKEN}")
    document = ListedDocument(
        *("pushed", "page/1", "id", build_uri("pushed", "page/1"), None, 1, 0, 0, 1),
        revision=1,
        source_metadata=metadata,
    )
    assert names.mask_uri(document).startswith("https://wiki.example/?key=")
    assert TOKEN not in names.mask_uri(document)


def test_only_a_declared_type_is_kept_as_it_is() -> None:
    names = MaskedNames([], Masker(shared_scanner()), declared_types={"controller"})
    document = ListedDocument(
        *("repo", "a.php", "id", build_uri("repo", "a.php"), None, 1, 0, 0, 1), source_type=TOKEN
    )
    assert TOKEN not in names.mask_source_type(document)
    assert names.mask_source_type(replace(document, source_type="controller")) == "controller"


def test_listing_pace_lists_rarely_and_sooner_after_a_change() -> None:
    now = [100.0]
    pace = ListingPace(lambda: now[0])
    assert pace.begin_run(), "the first run lists"
    pace.end_run(2.0, has_vanished=False)
    now[0] += 20.0
    assert not pace.begin_run()
    pace.end_run(0.0, has_vanished=False)
    assert not pace.is_listing
    pace.has_changed = True
    assert pace.begin_run(), "ten times as long as the listing took"
    assert not pace.has_changed
    pace.end_run(2.0, has_vanished=False)
    now[0] += 99.0
    assert not pace.begin_run()
    now[0] += 1.0
    assert pace.begin_run(), "fifty times as long"


def test_listing_pace_lists_at_once_after_documents_vanished() -> None:
    pace = ListingPace(lambda: 0.0)
    assert pace.begin_run()
    pace.end_run(2.0, has_vanished=False)
    assert not pace.begin_run()
    pace.end_run(0.0, has_vanished=True)
    assert pace.begin_run()
    pace.end_run(2.0, has_vanished=True)
    assert not pace.begin_run(), "a file that changes all the time"
