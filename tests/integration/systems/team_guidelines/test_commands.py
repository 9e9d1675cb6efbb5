"""`rag-assets guidelines`: the operations of the endpoints, for operators."""

from __future__ import annotations

import io
import sys
from typing import Any

import pytest

from tests.installation import CommandResult
from tests.integration.systems.team_guidelines.conftest import KEY, Guidelines

NEAR = "# Locators\n\nUse data-testid attributes, cosine 0.90.\n"
FAR = "# Coffee\n\nThe machine is on the second floor, cosine 0.60.\n"


def run(guidelines: Guidelines, command: str, *arguments: str) -> CommandResult:
    return guidelines.installation.command("guidelines", command, "commands", "web", *arguments)


def test_from_an_upload_to_a_context_and_back(guidelines: Guidelines) -> None:
    def said(command: str, *arguments: str) -> Any:
        result = run(guidelines, command, *arguments, "--json")
        assert result.code == 0, result.err
        return result.json

    near, far = guidelines.folder / "near.md", guidelines.folder / "far.md"
    near.write_text(NEAR)
    far.write_text(FAR)
    bare = guidelines.folder / "bare.md"
    bare.write_text("---\ntags: [style]\n---\n")
    assert "has no project" in run(guidelines, "list").err
    record = guidelines.put("commands", "web")
    assert "switched off" in run(guidelines, "upload", str(near)).err
    guidelines.switch("commands", on=True)
    lacking = run(guidelines, "upload", str(near)).err
    assert "rag-assets keys set commands.web openai" in lacking
    guidelines.give_key("commands")

    odd = guidelines.folder / "odd.txt"
    odd.write_text("Neither PDF nor Markdown nor DOCX.\n")
    mixed = run(guidelines, "upload", str(near), str(odd), str(far), str(bare), "--json")
    assert mixed.code == 1
    answer = mixed.out.splitlines()[0]
    assert answer.count('"duplicate": false') == 3
    assert "odd.txt" in answer
    assert said("upload", str(near))["uploaded"][0]["duplicate"] is True
    guidelines.driver.sync(record.id)
    listed = said("list")
    assert {one["fileName"]: one["status"] for one in listed["documents"]} == {
        "near.md": "READY",
        "far.md": "READY",
        "bare.md": "READY",
    }
    notes = {one["fileName"]: one["note"] for one in listed["documents"]}
    assert (notes["near.md"], notes["far.md"]) == (None, None)
    assert notes["bare.md"].startswith("Searches cannot find this document")
    assert notes["bare.md"] in run(guidelines, "list").out
    assert "near.md" in run(guidelines, "list").out

    found = said("context", "locators", "--explain")
    assert (found["source"], found["chunks"][0]["fileName"]) == ("documents", "near.md")
    assert [miss["fileName"] for miss in found["nearMisses"]] == ["far.md"]
    printed = run(guidelines, "context", "locators")
    assert printed.out.startswith("## Team Guidelines\n\n--- Passage [1] (source: near.md")
    [id_] = [one["_id"] for one in listed["documents"] if one["fileName"] == "near.md"]
    assert said("delete", id_)["outcome"] == "removed"
    assert "no document with this id" in run(guidelines, "delete", id_).err
    bare = run(guidelines, "context", "locators")
    assert bare.out == "There are no guidelines for this task.\n"
    assert "nothing above threshold of 0.75; the nearest is at 0.6" in bare.err
    assert "top_k" in run(guidelines, "context", "locators", "--top-k", "6").err


def test_a_text_is_set_printed_and_cleared(
    guidelines: Guidelines, monkeypatch: pytest.MonkeyPatch
) -> None:
    guidelines.put("commands", "web")
    assert run(guidelines, "text").out == "No text is set.\n"
    file = guidelines.folder / "rules.txt"
    file.write_text("Write tests.\r\n", newline="")
    assert run(guidelines, "text", "--file", str(file)).out == "The text is saved.\n"
    shown = run(guidelines, "text", "--json").json
    assert shown["text"] == "Write tests.\r\n"
    assert shown["updatedBy"].startswith("operator ")
    assert shown["etag"]
    monkeypatch.setattr(sys, "stdin", io.StringIO("From a pipe.\n"))
    assert run(guidelines, "text", "--file", "-").code == 0
    assert run(guidelines, "text").out == "From a pipe.\n\n"
    file.write_text(f"OPENAI_API_KEY={KEY}\n")
    refused = run(guidelines, "text", "--file", str(file))
    assert refused.code == 1
    assert "line 1: a credential (rule " in refused.err
    assert KEY not in refused.err
    file.write_bytes(b"\xff")
    assert "not UTF-8" in run(guidelines, "text", "--file", str(file)).err
    assert run(guidelines, "text", "--file", str(file), "--clear").code == 1
    assert run(guidelines, "text", "--clear").out == "The text is removed.\n"
    assert run(guidelines, "text").out == "No text is set.\n"


def test_operators_retry_enable_read_and_count(guidelines: Guidelines) -> None:
    record = guidelines.project("operated", "web", near=NEAR)

    def run(command: str, *arguments: str) -> CommandResult:
        done = guidelines.installation.command("guidelines", command, "operated", "web", *arguments)
        assert done.code == 0, done.err
        return done

    [document] = run("list", "--json").json["documents"]
    id_ = document["_id"]
    assert "data-testid" in run("chunks", id_).out
    assert run("chunks", id_, "--json").json["chunks"][0]["chunkIndex"] == 0
    assert "has not failed: it is READY" in run("retry", id_).out
    assert run("disable", id_, "--json").json["enabled"] is False
    assert guidelines.context(record).reason == "no-documents"
    run("enable", id_)
    guidelines.driver.sync(record.id)
    assert guidelines.context(record).source == "documents"
    used = run("usage", "--json").json
    assert used["days"][0]["used"]["texts"] > 0
    assert "This month: $" in run("usage").out
    unknown = guidelines.installation.command("guidelines", "retry", "operated", "web", "0" * 32)
    assert "the project has no document with this id" in unknown.err


def test_a_project_uses_the_local_model_until_it_begins_again(guidelines: Guidelines) -> None:
    def put(*options: str) -> Any:
        done = guidelines.installation.command(
            "projects", "put", "offline", "web", *options, "--json"
        )
        assert done.code == 0, done.err
        return done.json

    assert put("--provider", "local")["embedder_provider"] == "local"
    guidelines.switch("offline", on=True)
    record = guidelines.catalog.tenants.get("offline.web")
    guidelines.upload(record, near=NEAR)
    found = guidelines.context(record, "Which attribute do locators use?")
    assert (found.source, found.embedder.partition("/")[0]) == ("documents", "local")
    refused = guidelines.installation.command(
        "projects", "put", "offline", "web", "--provider", "openai"
    )
    assert "the operator has chosen the provider of embeddings: local" in refused.err
    assert put("--anew", "--provider", "openai")["embedder_provider"] == "openai"
    assert put("--threshold-from", "measured")["embedder_provider"] == "openai"
