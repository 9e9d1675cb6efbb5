import threading
from pathlib import Path
from urllib.parse import quote

import pytest

from rag_assets.privacy.masker import Masker, decode_repeatedly, might_hold_credential
from rag_assets.privacy.secrets.rules import SecretSpan
from rag_assets.privacy.secrets.scanner import SecretScanner
from tests.rules import with_rules
from tests.unit.privacy.secrets import planted

NAMES = [f"guide/part {n}/notes of the harbour {n}.md" for n in range(500)]


@pytest.fixture(scope="module")
def rules(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return with_rules(tmp_path_factory.mktemp("rules"))


@pytest.fixture(scope="module")
def masker(rules: Path) -> Masker:
    return Masker(SecretScanner(rules))


@pytest.mark.slow
@pytest.mark.parametrize("kind", planted.TOKENS)
def test_many_texts_are_masked_as_each_alone(masker: Masker, kind: str) -> None:
    token = planted.TOKENS[kind]
    texts = [*NAMES, f"a-{token}.md", token, f"key: {token}", "curl", "password", *NAMES[:3]]
    together = Masker(masker._scanner)
    together.prime(texts)
    assert [together.text(text) for text in texts] == [masker.text(text) for text in texts]
    assert [together.text(name) for name in NAMES] == NAMES
    assert not any(token in together.text(text) for text in texts)


@pytest.mark.slow
def test_plain_names_are_scanned_together(rules: Path) -> None:
    scans: list[str] = []

    class Counting(SecretScanner):
        def scan(self, text: str) -> list[SecretSpan]:
            scans.append(text)
            return super().scan(text)

    masker = Masker(Counting(rules))
    masker.prime(NAMES)
    assert len(scans) == 1
    assert masker.text(NAMES[7]) == NAMES[7]
    assert len(scans) == 1


@pytest.mark.parametrize("kind", planted.TOKENS)
@pytest.mark.parametrize("depth", [1, 2, 3])
def test_percent_encoded_credentials_are_masked(masker: Masker, kind: str, depth: int) -> None:
    encoded = planted.TOKENS[kind]
    for _ in range(depth):
        encoded = "".join(f"%{byte:02x}" for byte in encoded.encode())
    uri = f"https://wiki.example/a%20b?key={encoded}&page=3"
    masked = masker.text(uri)
    assert len(masked) == len(uri)
    assert masked.startswith("https://wiki.example/a%20b?key=")
    assert masked.endswith("&page=3")
    assert encoded not in masked
    for decoded in decode_repeatedly(masked):
        assert planted.TOKENS[kind][-20:] not in decoded.text


def test_texts_without_credentials_stay_unchanged(masker: Masker) -> None:
    for text in ("", "100 %", "a%zz", "%", quote("Wörter für Kapitän"), "%ff%fe", "%E2%82"):
        assert masker.text(text) == text


@pytest.mark.parametrize("text", ["ä%C3%A4b%2Fc%25", "%E2%82%AC%ff%F0%9F%94%92x", "%2525", "a%20"])
def test_places_of_decoded_characters_cover_the_whole_text(text: str) -> None:
    found = list(decode_repeatedly(text))
    assert found
    for decoded in found:
        assert len(decoded.places) == len(decoded.text)
        ends = [0, *(end for _, end in decoded.places)]
        assert [start for start, _ in decoded.places] == ends[:-1]
        assert ends[-1] == len(text)


def test_a_value_is_masked_for_its_name(masker: Masker) -> None:
    value = planted.PASSWORD
    assert masker.mask_named_value("password", value) == "*" * len(value)
    assert masker.mask_named_value("colour", "green") == "green"


@pytest.mark.parametrize("kind", planted.TOKENS)
def test_every_kind_of_token_might_be_a_credential(kind: str) -> None:
    assert might_hold_credential(planted.TOKENS[kind])
    assert not might_hold_credential("3 documents, 12 of 14 checks done")


def test_threads_may_use_it_concurrently(masker: Masker) -> None:
    found: list[str] = []

    def ask(number: int) -> None:
        found.extend(masker.text(f"{planted.GITHUB} {number} {n}") for n in range(50))

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 400
    assert not any(planted.GITHUB in text for text in found)


KEY = "sk-proj-" + "planted0123456789abcdefWXYZ"
MASKER = Masker(SecretScanner())


def test_each_credential_is_found_on_its_line() -> None:
    text = f"# Rules\n\nOPENAI_API_KEY={KEY}\nplain\npassword: {'Hx7' * 5}!\n"
    findings = MASKER.find_credentials(text)
    assert [finding.line for finding in findings] == [3, 5]
    assert all(finding.rule for finding in findings)
    assert MASKER.find_credentials("# Rules\n\nUse data-testid for locators.\n") == []


def test_an_encoded_credential_is_found_on_its_line() -> None:
    hidden = "".join(f"%{ord(letter):02X}" for letter in f"api_key={KEY}")
    assert [finding.line for finding in MASKER.find_credentials(f"one\ntwo {hidden}\n")] == [2]
    assert MASKER.find_credentials(quote("Use data-testid & role = button")) == []
