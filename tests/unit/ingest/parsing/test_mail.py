from email.message import EmailMessage

import pytest

from rag_assets.common.errors import DocumentRejected
from rag_assets.ingest.parsing.media_types import EML
from rag_assets.ingest.parsing.model import ParsedText
from rag_assets.ingest.parsing.registry import parse
from tests.unit.ingest.parsing import pdfs
from tests.unit.ingest.parsing.office_files import block, lines, sheet, slides


def message(subject: str = "Yellow sheet", body: str = "Dear colleagues,\n") -> EmailMessage:
    made = EmailMessage()
    made["Subject"] = subject
    made["From"] = "Zoë <zoe@example.org>"
    made["To"] = "all@example.org"
    made["Date"] = "Fri, 13 Mar 2026 15:20:00 +0000"
    made["X-Spam"] = "no"
    if body:
        made.set_content(body)
    return made


def read(made: EmailMessage) -> ParsedText:
    return parse(made.as_bytes(), EML)


FROM = "From: Zoë <zoe@example.org>\nTo: all@example.org\nDate: Fri, 13 Mar 2026 15:20:00 +0000"


def test_a_message_is_its_subject_its_people_and_its_text() -> None:
    made = message("Grüße aus " + "Köln " * 20, "Dear all,\r\n\r\n> quoted\n> text\n\nBye\n")
    result = read(made)
    assert lines(result) == [
        ("heading1", ("Grüße aus " + "Köln " * 20).strip()), ("paragraph", FROM),
        ("paragraph", "Dear all,"), ("paragraph", "> quoted\n> text"), ("paragraph", "Bye"),
    ]  # fmt: skip
    assert result.title == ("Grüße aus " + "Köln " * 20).strip()
    assert (result.media_type, result.has_lines) == (EML, False)


def test_of_alternatives_plain_text_is_read_and_html_where_there_is_none() -> None:
    both = message()
    both.add_alternative("<p>html</p>", subtype="html")
    assert "html" not in read(both).text
    only = message(body="")
    only.set_content("<style>x</style><h1>News</h1><ul><li>a</ul>", subtype="html")
    assert lines(read(only))[2:] == [("heading2", "News"), ("list", "- a")]


@pytest.mark.parametrize(
    "plain",
    [
        "This message is in HTML. Please use a mail program that shows it.\n",
        "Diese Nachricht im Browser lesen: https://example.org/v/8f3a?id=12&utm=x\n",
        "このメールはHTML形式です。\n",
        "-- \n",
    ],
)
@pytest.mark.parametrize("has_picture", [False, True])
def test_html_is_read_where_plain_text_only_refers_to_it(plain: str, *, has_picture: bool) -> None:
    page = "<h1>Rundbrief</h1><p>Der Bagger Pelikan gräbt bis Pfingsten in Becken vier.</p>"
    made = message(body=plain)
    made.add_alternative(page, subtype="html")
    if has_picture:
        html_part = made.get_payload(1)
        assert isinstance(html_part, EmailMessage)
        html_part.add_related(b"GIF89a", maintype="image", subtype="gif", cid="<p>")
    made.add_alternative("BEGIN:VCALENDAR", subtype="calendar")
    text = "Der Bagger Pelikan gräbt bis Pfingsten in Becken vier."
    assert lines(read(made))[2:4] == [("heading2", "Rundbrief"), ("paragraph", text)]


@pytest.mark.parametrize(
    ("plain", "page"),
    [
        ("*Hafen*\nDer Bagger gräbt\nbis Pfingsten: https://example.org/a/b/c?d=e&f=g\n",
         "<h1>Hafen</h1><p>Der Bagger gräbt bis <a href=x>Pfingsten</a></p>"),
        ("Der Bagger gräbt bis Pfingsten in Becken vier.\n", "<p>Gesendet vom Telefon</p>"),
        ("Der Bagger gräbt.\n", "<img src=x>"),
        ("Der Bagger gräbt.\n", "<div>" * 5_000 + "zu tief"),
    ],
)  # fmt: skip
def test_a_complete_plain_text_is_read_in_place_of_html(plain: str, page: str) -> None:
    made = message(body=plain)
    made.add_alternative(page, subtype="html")
    assert lines(read(made))[2:] == [("paragraph", plain.strip())]


@pytest.mark.slow
def test_attachments_are_read_by_their_own_parsers_with_their_places() -> None:
    made = message()
    made.add_attachment(
        sheet(["Week", "Parcels"], ["49", 5]), maintype="application", subtype="octet-stream",
        filename="plän.xlsx",
    )  # fmt: skip
    made.add_attachment("a,b\n1,2\n", subtype="csv", filename="list.csv")
    made.add_attachment(
        slides(lambda deck: deck.slides.add_slide(deck.slide_layouts[0])),
        maintype="application", subtype="octet-stream", filename="empty.pptx",
    )  # fmt: skip
    pdf = pdfs.laid_out([[("body", "In the attached paper.")]])
    made.add_attachment(pdf, maintype="application", subtype="pdf", filename="paper.pdf")
    made.add_attachment(b"\x89PNG\r\n\x1a\n", maintype="image", subtype="png", filename="p.png")
    result = read(made)
    row = block(result, "49 | 5")
    path = ("Yellow sheet", "Attachment: plän.xlsx", "Plan", "Week | Parcels")
    assert row.heading_path == path
    assert (row.sheet, row.row) == ("Plan", 2)
    assert block(result, "1,2").row == 2
    assert block(result, "In the attached").page == 1
    assert lines(result)[-1] == ("paragraph", "Attachments not read: empty.pptx, p.png")


def test_messages_in_messages_are_read_one_deep() -> None:
    innermost = message("Innermost", "not read")
    inner = message("Inner", "the inner text")
    inner.add_attachment(innermost)
    inner.add_attachment("not read", subtype="plain", filename="x.txt")
    outer = message()
    outer.add_attachment(inner)
    outer.add_attachment(
        inner.as_bytes(), maintype="application", subtype="octet-stream", filename="again.eml"
    )
    result = read(outer)
    assert result.text.count("the inner text") == 2
    assert "not read" not in result.text.replace("Attachments not read: Innermost, x.txt", "")
    assert ("heading2", "Attachment: Inner") in lines(result)
    assert ("heading2", "Attachment: again.eml") in lines(result)


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"From: a\nSubject: =?no-such?q?x?=\n\nbody", "=?no-such?q?x?="),
        (b"From: a\nSubject: =?\xe9?q?x?=\n\nbody", "body"),
        (b"From: a\nSubject: =?utf-8?b?x?=\n\nbody", "body"),
        (b"From: a\nSubject: gr\xfc\xdfe\n\nbody", "body"),
        (b"From: a\nSubject: x\nContent-Type: text/plain; charset=no-such\n\nb\xc3\xbcy", "büy"),
        (b"From: a\nSubject: x\nContent-Type: text/plain; charset=iso-8859-1\n\nb\xfcy", "büy"),
        (b"From: a\nSubject: x\nContent-Transfer-Encoding: base64\n\nYm9keQ==", "body"),
        (b"From: a\nSubject: x\nContent-Type: multipart/mixed\n\nno boundary", "x"),
        (b"From: a\nDate: x\nMessage-ID: <1>\nTo: b\n\nno subject", "no subject"),
    ],
)
def test_damaged_headers_and_encodings_take_nothing_else_away(data: bytes, text: str) -> None:
    assert text in parse(data, EML).text


@pytest.mark.parametrize("subject", [b"a\0b", b"=?utf-8?q?a=00b?=", b"a=?utf-8?b?7aCA?=b"])
def test_a_subject_holds_nothing_that_cannot_be_stored(subject: bytes) -> None:
    title = parse(b"From: a\nSubject: " + subject + b"\n\nbody", EML).title or ""
    assert title.isprintable()
    assert title.encode().startswith(b"a")


def test_a_subject_alone_is_a_message() -> None:
    assert lines(read(message("Only this", body="")))[0] == ("heading1", "Only this")


@pytest.mark.slow
def test_parts_nested_without_end_are_rejected() -> None:
    part = 'Content-Type: multipart/mixed; boundary="b{0}"\n\n--b{0}\n'
    parts = "".join(part.format(n) for n in range(3_000))
    with pytest.raises(DocumentRejected, match="nested too deeply"):
        parse(f"From: a\nSubject: x\n{parts}".encode(), EML)


def test_of_very_many_attachments_the_first_are_read_and_the_others_named() -> None:
    made = message("Many")
    for number in range(103):
        made.add_attachment(f"text of {number}", filename=f"{number}.txt")
    result = read(made)
    assert "text of 99" in result.text
    assert "text of 100" not in result.text
    assert result.text.endswith("Attachments not read: 100.txt, 101.txt, 102.txt")


@pytest.mark.parametrize(
    ("declared", "data", "text"),
    [
        ("iso-8859-1", "Preis 5 € – „Angebot“".encode("cp1252"), "Preis 5 € – „Angebot“"),
        ("gb2312", "朱镕基".encode("gbk"), "朱镕基"),
        ("us-ascii", "Mühle".encode("cp1252"), "Mühle"),
        ("x-unknown", "Mühle".encode("cp1252"), "Mühle"),
        ("x-unknown", "Mühle".encode(), "Mühle"),
    ],
)
def test_a_body_is_decoded_as_mail_programs_do(declared: str, data: bytes, text: str) -> None:
    kind = f"Content-Type: text/plain; charset={declared}\n\n".encode()
    assert lines(parse(b"From: a\nSubject: s\nMessage-ID: m\n" + kind + data, EML))[-1] == (
        "paragraph", text,
    )  # fmt: skip


@pytest.mark.parametrize("encoding", ["utf-8", "cp1252"])
def test_a_subject_without_encoded_words_is_read(encoding: str) -> None:
    data = "From: Zoë\nSubject: Büro\nMessage-ID: m\n\nText".encode(encoding)
    result = parse(data, EML)
    assert (result.title, lines(result)[1]) == ("Büro", ("paragraph", "From: Zoë"))


def test_an_attached_text_is_read_in_its_declared_encoding() -> None:
    made = message()
    made.add_attachment("Mühle am Bach\n", filename="n.txt", charset="iso-8859-1")
    assert lines(read(made))[-1] == ("paragraph", "Mühle am Bach")


@pytest.mark.parametrize("kind", [b"Content-Type: text/plain\n\n", b"\n"])
def test_a_body_without_a_declared_encoding_is_read(kind: bytes) -> None:
    data = b"From: a\nSubject: s\nMessage-ID: m\n" + kind + "Forêt près d'Ålesund".encode("cp1252")
    assert lines(parse(data, EML))[-1] == ("paragraph", "Forêt près d'Ålesund")
