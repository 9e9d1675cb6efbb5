"""Contexts for URIs, commands, headers and lines of known files."""

from __future__ import annotations

from tests.security.credentials import transforms as t
from tests.security.credentials.model import Context

LINES: tuple[Context, ...] = (
    Context("alone", "«X»"),
    Context("after-sentence", "Run this on the bastion:\n\n«X»\n\nThen wait a minute.\n"),
    Context("fenced", "Run this:\n\n```bash\n«X»\n```\n"),
    Context("fenced-other", "```\n# first\nls -l\n«X»\necho done\n```\n"),
    Context("indented", "Run this:\n\n    «X»\n"),
    Context("code", "Run `«X»` on the bastion."),
    Context("list", "- `«X»`\n- `uptime`\n"),
    Context("prompt", "$ «X»\nok\n"),
    Context("comment", "# «X»\n"),
    Context("python", 'VALUE = "«X»"', t.json_escaped),
    Context("json", '{"value": "«X»", "port": 80}', t.json_escaped),
    Context("yaml", "value: «X»\nport: 80\n"),
    Context("yaml-item", "steps:\n  - «X»\n  - make test\n"),
    Context("yaml-run", "- name: check\n  run: |\n    «X»\n    make test\n"),
    Context("dotenv", "«NAME»=«X»\nPORT=80\n", None, t.is_an_address),
    Context("dockerfile", "FROM alpine\nRUN «X»\n"),
    Context("html-pre", "<pre>«X»</pre>", t.xml_escaped),
    Context("html-code", "<p>Run <code>«X»</code> first.</p>", t.xml_escaped),
    Context("pipe-cell", "| step | command |\n|---|---|\n| 1 | `«X»` |\n"),
    Context("chat", "tom: «X»\njane: thx\n"),
    Context("log", "10:12:44 INFO running «X»"),
    Context("mid-sentence", "We connect with «X» from the workers."),
    Context("german", "Verbunden wird mit «X»\n"),
    Context("md-document", "# Runbook\n\nRun:\n\n```\n«X»\n```\n", media_type="text/markdown"),
    Context("docx-line", "Runbook\n«X»\nThen wait.", media_type="docx"),
    Context(
        "html-document",
        "<html><body><h1>Runbook</h1><pre>«X»</pre></body></html>",
        t.xml_escaped,
        media_type="text/html",
    ),
    Context("after-same-word", "Use curl and mysql, or psql, on the bastion.\n«X»\n"),
    Context("two-lines-before", "curl -sS https://example.org/health\nmysql --version\n«X»\n"),
)
