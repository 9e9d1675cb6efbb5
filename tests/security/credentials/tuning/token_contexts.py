"""Contexts for tokens that are recognized by their own form."""

from __future__ import annotations

from tests.security.credentials import transforms as t
from tests.security.credentials.model import Context

MD = "text/markdown"

TOKENS: tuple[Context, ...] = (
    Context("alone", "«X»"),
    Context("mid-sentence", "We still had «X» in the old pipeline and nobody noticed."),
    Context("full-stop", "It was signed in with «X». Please have it replaced today."),
    Context("full-stop-end", "The job ran with «X»."),
    Context("comma", "Use «X», then restart the worker."),
    Context("colon-after", "About «X»: it was left in the wiki by mistake."),
    Context("parentheses", "The staging one («X») is in the wiki as well."),
    Context("straight-quotes", 'Somebody pasted "«X»" into the ticket.'),
    Context("single-quotes", "Somebody pasted '«X»' into the ticket."),
    Context("bold", "The one to use is **«X»** for now."),
    Context("code", "The one to use is `«X»` for now."),
    Context("bold-code", "Use **`«X»`** here."),
    Context("link-target", "See [the console](https://console.example.org/?k=«X») for more."),
    Context("list-dash", "Used in production:\n\n- «X»\n- the other one is in the safe\n"),
    Context("list-star-text", "* worker: «X», rotated monthly\n* web: none\n"),
    Context("heading", "## «X»\n\nThis one belongs to the mailing list.\n"),
    Context("pipe-cell", "| what | value | owner |\n|---|---|---|\n| mailer | «X» | Jane |\n"),
    Context("html-code", "<p>The one to use is <code>«X»</code> for now.</p>", t.xml_escaped),
    Context("html-attribute", '<input type="hidden" name="t" value="«X»">', t.xml_escaped),
    Context("html-bold", "<p>Use <strong>«X»</strong>.</p>", t.xml_escaped),
    Context("json-array", '{"values": ["first", "«X»", "last"]}', t.json_escaped),
    Context("python-list", 'VALUES = ["first", "«X»"]'),
    Context("python-call", "client = Client('«X»', timeout=30)"),
    Context("yaml-item", "values:\n  - first\n  - «X»\n  - last\n"),
    Context("emoji-after", "the new one is «X»🔑 thanks"),
    Context("check-mark", "✅«X»✅"),
    Context("no-break-blank", "Siehe\u00a0«X»\u00a0im Tresor."),
    Context("arrow", "old → new: xyz→«X»"),
    Context("dash-before", "production—«X»—until Friday"),
    Context("shell-comment", "# was: «X»\nmake deploy\n"),
    Context("echo", 'echo "«X»" >> /tmp/out'),
    Context("chat", "[10:42] jane: can you try «X»?\n[10:43] tom: works 👍\n"),
    Context("log-value", "2026-03-01T10:12:44Z INFO auth accepted value=«X» user=17 ms=12"),
    Context("log-bracket", "10:12:44 [worker-3] DEBUG request [«X»] done"),
    Context("commit", "Remove the test value «X» from the fixtures\n\nIt was revoked in March."),
    Context("german", "Der alte Wert «X» wurde gestern ersetzt."),
    Context("german-end", "Bitte künftig nur noch diesen nehmen: «X»."),
    Context("spanish", "¿Alguien sabe para qué sirve «X»?"),
    Context("url-query", "https://example.org/hook?id=7&v=«X»"),
    Context("zero-width", "Copy «X» from the page.", t.zero_width, t.long_enough),
    Context("wrapped", "In the handbook:\n«X»\nand more text.", t.wrapped, t.long_enough),
    Context("full-width", "値は «X» です。", t.full_width, t.long_enough),
    Context("base64", "payload: «X»", t.in_base64, t.long_enough),
    Context(
        "percent-encoded", "https://example.org/cb?state=«X»", t.percent_encoded, t.long_enough
    ),
    Context(
        "md-document", "# Notes\n\nThe job ran with **«X»**.\n\nMore text here.\n", media_type=MD
    ),
    Context(
        "html-document",
        "<html><body><h1>Notes</h1><p>Sent with <b>«X»</b>.</p></body></html>",
        t.xml_escaped,
        media_type="text/html",
    ),
    Context("docx-paragraph", "Notes\nThe job ran with «X».", media_type="docx"),
    Context("pdf-paragraph", "The job ran with «X».", media_type="pdf"),
)
