"""Findings name the line of a credential, and the rule that found it."""

from __future__ import annotations

from urllib.parse import quote

from rag_assets.privacy.masker import Masker
from rag_assets.privacy.secrets.scanner import SecretScanner

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
