"""Writes e-mails with plain text, the same text as HTML, and an attachment."""

from __future__ import annotations

from datetime import datetime
from email.message import EmailMessage
from email.policy import SMTP
from email.utils import format_datetime
from html import escape

from examples.building import markdown

_TAGS = {"plain": "{}", "strong": "<b>{}</b>", "code": "<code>{}</code>"}


def build(source: str, attachment: str) -> bytes:
    """Return the e-mail of a source: front matter with the headers, then text.

    Args:
        source: front matter (from, to, cc, subject, date, message_id, attachment), then text.
        attachment: CSV, attached under the name that the front matter gives.
    """
    facts, text = markdown.front_and_text(source)
    mail = EmailMessage(policy=SMTP)
    for name in ("from", "to", "cc", "subject"):
        mail[name.capitalize()] = facts[name]
    mail["Date"] = format_datetime(_moment(facts["date"]))
    mail["Message-ID"] = facts["message_id"]
    mail.set_content(text.strip().replace("**", "") + "\n")
    mail.add_alternative(_html(text), subtype="html")
    mail.add_attachment(attachment, subtype="csv", filename=facts["attachment"])
    for number, part in enumerate(part for part in mail.walk() if part.is_multipart()):
        part.set_boundary(f"=_part_{number}_of_the_example")
    return mail.as_bytes()


def _moment(value: datetime | str) -> datetime:
    return value if isinstance(value, datetime) else datetime.fromisoformat(value)


def _html(text: str) -> str:
    parts = []
    for block in markdown.blocks(text):
        match block:
            case markdown.Listing(items):
                inside = "".join(f"<li>{_inline(item)}</li>" for item in items)
                parts.append(f"<ul>{inside}</ul>")
            case markdown.Paragraph(words):
                parts.append(f"<p>{_inline(words)}</p>")
    return "<html><body>\n" + "\n".join(parts) + "\n</body></html>\n"


def _inline(text: str) -> str:
    return "".join(_TAGS[mark].format(escape(piece)) for mark, piece in markdown.runs(text))
