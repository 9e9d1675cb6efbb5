"""Contexts for keys of several lines."""

from __future__ import annotations

from tests.security.credentials import transforms as t
from tests.security.credentials.model import Context

BLOCKS: tuple[Context, ...] = (
    Context("first-of-file", "«X»\nend of file\n"),
    Context("tilde-fence", "~~~\n«X»\n~~~\n"),
    Context("fenced-named", "```pem\n«X»\n```\nThat was it.\n"),
    Context("deep-list", "1. one\n   - two\n\n        «X»\n", t.indented_8),
    Context("yaml-secret", "stringData:\n  tls.key: |-\n        «X»\n", t.indented_8),
    Context("slashes-comment", "// «X»\nserve();\n", t.commented_slashes),
    Context("star-comment", "/*\n * «X»\n */\n", t.commented_star),
    Context("html-breaks", "<p>«X»</p>", t.breaks),
    Context("textarea", '<textarea name="k">«X»</textarea>', t.xml_escaped),
    Context("dotenv-one-line", 'TLS_KEY="«X»"\n', t.one_line),
    Context("yaml-one-line", 'tls:\n  key: "«X»"\n', t.one_line),
    Context("js-template", "const key = `«X»`;\n"),
    Context("java-joined", 'String key = "«X»";\n', t.concatenated),
    Context("go-raw", "var key = []byte(`«X»`)\n"),
    Context("hcl-heredoc", "key = <<-EOT\n    «X»\n  EOT\n", t.indented_4),
    Context("mail", "Hi Tom,\n\n«X»\n\nBest, Jane\n"),
    Context("chat", "jane: here\n«X»\ntom: thanks\n"),
    Context("log", "10:12:44 DEBUG loaded:\n«X»\n10:12:45 DEBUG done\n"),
    Context("blanks", "key «X» end", t.blanks_for_lines),
    Context("french", "Voici la clé :\n«X»\nMerci.\n"),
    Context("rst", "The key::\n\n    «X»\n\nText.\n", t.indented_4, media_type="text/x-rst"),
    Context(
        "html-document",
        "<html><body><h1>Setup</h1><pre>«X»</pre></body></html>",
        t.xml_escaped,
        media_type="text/html",
    ),
    Context("pdf-lines", "Setup\n«X»", media_type="pdf"),
    Context(
        "mail-document",
        "From: a@example.org\nTo: b@example.org\nSubject: key\n\n«X»\n",
        media_type="message/rfc822",
    ),
)
