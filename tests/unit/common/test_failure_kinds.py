"""Every failure of a document or a request has a kind, with a text for admins."""

import re
from collections.abc import Iterator

import pytest

from rag_assets.common import errors
from rag_assets.common.failure_kinds import FAILURE_KINDS, WORDS, failure_kind
from rag_assets.storage.catalog.tables import documents

OF_AN_OPERATOR = re.compile(r"`|rag-assets|RAG_|\.yaml|/\w|--|\b[a-z]+_[a-z]+\b|\bparser\.")
DOCUMENTS_FAIL_BY = (errors.DocumentRejected, errors.ProviderError, errors.UploadRefused)


def subclasses(of: type[errors.RagAssetsError]) -> Iterator[type[errors.RagAssetsError]]:
    yield of
    for below in of.__subclasses__():
        yield from subclasses(below)


def test_every_kind_has_words_without_what_only_operators_know() -> None:
    assert set(WORDS) == set(FAILURE_KINDS)
    for words in WORDS.values():
        for text in (words.reason, words.remedy):
            assert text[0].isupper()
            assert text.endswith(".")
            assert not OF_AN_OPERATOR.search(text), text


@pytest.mark.parametrize("base", DOCUMENTS_FAIL_BY)
def test_every_error_of_a_document_has_a_kind(base: type[errors.RagAssetsError]) -> None:
    for kind in subclasses(base):
        assert failure_kind(kind("a reason")) in FAILURE_KINDS


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (errors.DocumentRejected("x"), "unreadable"),
        (errors.DocumentEncrypted("x"), "encrypted"),
        (errors.DocumentVanished("x"), "changing"),
        (errors.BlobAltered("x"), "lost"),
        (errors.NoProviderKey("x"), "no-key"),
        (errors.NotOptedIn("x"), "switched-off"),
        (errors.KeyUnreadable("x"), "key-unreadable"),
        (errors.ProviderRefused("x"), "request-refused"),
        (errors.ProviderRefused("x", fault="key"), "key-refused"),
        (errors.ProviderRefused("x", fault="model"), "model-refused"),
        (errors.ProviderRefused("x", fault="quota"), "quota-exhausted"),
        (errors.ProviderRefused("x", fault="address"), "address-refused"),
        (errors.ChatRefused("x", fault="quota"), "quota-exhausted"),
        (errors.ProviderUnavailable("x"), "provider-unavailable"),
        (errors.WrongShape("x"), "wrong-vectors"),
        (errors.BadVectors("x"), "bad-response"),
        (errors.ChatFailed("x"), "bad-response"),
        (errors.CapReached("x"), "cap-reached"),
        (errors.InputRejected("x"), "text-rejected"),
        (errors.ParserUnusable("x"), "installation"),
        (errors.ConfigurationError("x"), "installation"),
    ],
)
def test_the_kind_tells_what_can_be_done(error: errors.RagAssetsError, kind: str) -> None:
    assert failure_kind(error) == kind


def test_the_database_knows_the_same_kinds() -> None:
    constraint = next(c for c in documents.constraints if c.name == "ck_documents_error_kind")
    assert all(f"'{kind}'" in str(getattr(constraint, "sqltext", "")) for kind in FAILURE_KINDS)
