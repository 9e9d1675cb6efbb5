"""Contexts for URIs, commands, headers and lines of known files."""

from __future__ import annotations

from tests.security.credentials import transforms as t
from tests.security.credentials.model import Context

LINES: tuple[Context, ...] = (
    Context("first-of-file", "«X»\n# end of file\n"),
    Context("between-lines", "localhost\n«X»\nexample.org\n"),
    Context("tilde-fence", "Run this:\n\n~~~sh\n«X»\n~~~\n"),
    Context("tab-indented", "run:\n\t«X»\n"),
    Context("quote-block", "> «X»\n\nas Tom wrote.\n"),
    Context("numbered", "1. `cd /srv`\n2. `«X»`\n"),
    Context("bold-code", "Run **`«X»`** once."),
    Context("root-prompt", "root@db-3:~# «X»\n"),
    Context("user-prompt", "jane@laptop ~ % «X»\n"),
    Context("slashes-comment", "// «X»\nmain();\n"),
    Context("js", "const u = '«X»';", None, t.without_single_quotes),
    Context("go", 'url := "«X»"', t.json_escaped),
    Context("java", 'String url = "«X»";', t.json_escaped),
    Context("toml", 'url = "«X»"\n', t.json_escaped),
    Context("ini", "[db]\nurl = «X»\n"),
    Context("xml", "<url>«X»</url>", t.xml_escaped),
    Context("xml-attribute", '<add name="db" connectionString="«X»" />', t.xml_escaped),
    Context("compose", "environment:\n  «NAME»: «X»\n", None, t.is_an_address),
    Context(
        "kubernetes", "env:\n  - name: «NAME»\n    value: '«X»'\n", None, t.without_single_quotes
    ),
    Context("shell-script", "#!/bin/sh\nset -e\n«X»\nexit 0\n"),
    Context("makefile", "check:\n\t@«X»\n"),
    Context("cron", "15 3 * * * «X»\n"),
    Context("heredoc", "cat <<EOF\n«X»\nEOF\n"),
    Context("mail", "Hi,\n\nthis works for me:\n«X»\n\nBest\n"),
    Context("commit", "Fix the check\n\nIt ran\n    «X»\nbefore.\n"),
    Context("diff", "-echo ok\n+«X»\n"),
    Context("rst", "Run::\n\n    «X»\n"),
    Context("rst-inline", "Run ``«X»`` once."),
    Context("french", "Lancez `«X»`, puis attendez."),
    Context("spanish", "Ejecute `«X»`."),
    Context("cell-line", "step;command;who\n1;«X»;jane\n", None, t.without_quotes),
    Context("emoji", "👉 «X»\n"),
    Context("stack-trace", "Error: cannot run: «X»\n"),
    Context("rst-document", "Runbook\n=======\n\nRun::\n\n    «X»\n", media_type="text/x-rst"),
    Context("pdf-line", "Runbook\n«X»", media_type="pdf"),
    Context("pptx-line", "Runbook\n«X»", media_type="pptx"),
    Context("after-curl", "With curl it is simple.\ncurl -u someone https://example.org\n«X»\n"),
)
