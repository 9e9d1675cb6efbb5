"""Contexts for keys of several lines."""

from __future__ import annotations

from tests.security.credentials import transforms as t
from tests.security.credentials.model import Context

BLOCKS: tuple[Context, ...] = (
    Context("alone", "«X»\n"),
    Context("after-sentence", "This is the key of the old server:\n\n«X»\n\nPlease replace it.\n"),
    Context("fenced", "```\n«X»\n```\n"),
    Context("fenced-list", "- first\n\n  ```\n  «X»\n  ```\n", t.indented_2),
    Context("indented", "The key:\n\n    «X»\n", t.indented_4),
    Context("tabbed", "key:\n\t«X»\n", t.tabbed),
    Context("yaml-block", "tls:\n  key: |\n    «X»\n  port: 443\n", t.indented_4),
    Context("heredoc", "cat > server.key <<EOF\n«X»\nEOF\n"),
    Context("mail-quote", "> «X»\n\nGot it.\n", t.quoted_mail),
    Context("comment", "# «X»\nserve();\n", t.commented),
    Context("html-pre", "<pre>\n«X»\n</pre>", t.xml_escaped),
    Context("xml", "<config>\n  <value>\n«X»\n  </value>\n</config>", t.xml_escaped),
    Context("windows-lines", "The key:\r\n\r\n«X»\r\n\r\nEnd.\r\n", t.crlf),
    Context("json-string", '{"tls": "«X»", "port": 443}', t.json_escaped),
    Context("python-triple", 'KEY = """«X»"""\n'),
    Context("script-variable", "KEY='«X»'\nexport KEY\n"),
    Context("diff", "@@ -0,0 +1 @@\n+«X»\n", t.diff_added),
    Context("german", "Hier der Schlüssel:\n«X»\nBitte löschen.\n"),
    Context("md-document", "# Setup\n\n```\n«X»\n```\n\nText.\n", media_type="text/markdown"),
    Context("docx-lines", "Setup\n«X»\nDone.", media_type="docx"),
)
