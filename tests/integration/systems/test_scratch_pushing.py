from __future__ import annotations
import json, time
from datetime import UTC, datetime, timedelta
from sqlalchemy import text
from tests.installation import Installation
from tests.integration.systems.workspace_site import Site, workspace
from tests.unit.ingest.parsing import pdfs


def show(name, answer):
    print("@@", name, answer.status_code, answer.text[:400].replace("\n", " "))


def test_all(shared_installation: Installation) -> None:
    with workspace(shared_installation, "rev") as s:
        s.grant("p1", "db1")
        page = {"title": "T", "blocks": [{"block_id": "b1", "type": "paragraph", "text": "Alpha."}]}
        P = "/rag/records/"
        show("put", s.send("PUT", P + "page/p1", page))
        show("type", s.send("PUT", P + "wiki/1", page))
        show("type delete", s.send("DELETE", P + "wiki/1"))
        show("type get", s.send("GET", P + "wiki/1"))
        show("field", s.send("PUT", P + "page/p1", {**page, "colour": 1}))
        show(
            "nested field",
            s.send(
                "PUT",
                P + "page/p1",
                {"title": "T", "blocks": [{"block_id": "b", "type": "p", "bogus": 1}]},
            ),
        )
        show("text body", s.send("PUT", P + "page/p1", {"text": "x"}))
        show(
            "code secret",
            s.send(
                "PUT",
                P + "page/p1",
                {
                    "title": "T",
                    "blocks": [
                        {
                            "block_id": "c",
                            "type": "code",
                            "text": "quokka",
                            "metadata": {"secret": True},
                        },
                        *page["blocks"],
                    ],
                },
            ),
        )
        show(
            "many blocks",
            s.send(
                "PUT",
                P + "page/p1",
                {"title": "T", "blocks": [{"block_id": str(n), "type": "p"} for n in range(20001)]},
            ),
        )
        show(
            "block",
            s.send(
                "PUT",
                P + "block/b1",
                {
                    "page_uuid": "p1",
                    "block": {"block_id": "b1", "type": "paragraph", "text": "Beta."},
                },
            ),
        )
        show("get block", s.send("GET", P + "block/b1"))
        show("get block page", s.send("GET", P + "block/b1?page_uuid=p1"))
        show(
            "block other id",
            s.send(
                "PUT",
                P + "block/zz",
                {
                    "page_uuid": "p1",
                    "block": {"block_id": "b1", "type": "paragraph", "text": "Beta."},
                },
            ),
        )
        show(
            "template",
            s.send(
                "PUT",
                P + "template/t1",
                {
                    "name": "N",
                    "description": "D",
                    "payload": {
                        "a": [1, {"b": "gamma"}],
                        "n": 1e400 if False else 3,
                        "s": "😀",
                    },
                },
            ),
        )
        R = {**s.headers(), "Content-Type": "application/json"}
        show(
            "surrogate",
            s.client.put(
                P + "template/t3", content=b'{"name":"n","payload":{"a":"\\ud800"}}', headers=R
            ),
        )
        show(
            "nan", s.client.put(P + "template/t3", content=b'{"name":"n","payload":NaN}', headers=R)
        )
        show(
            "bigint",
            s.client.put(
                P + "template/t3", content=b'{"name":"n","payload":' + b"9" * 5000 + b"}", headers=R
            ),
        )
        show(
            "deep",
            s.client.put(
                P + "template/t3",
                content=b'{"name":"n","payload":' + b"[" * 3000 + b"]" * 3000 + b"}",
                headers=R,
            ),
        )
        show("dup", s.client.put(P + "template/t3", content=b'{"name":"n","name":"m"}', headers=R))
        show(
            "3000 blocks",
            s.send(
                "PUT",
                P + "page/p1",
                {
                    "title": "T",
                    "blocks": [
                        {"block_id": str(n), "type": "p", "text": "x", "level": 0}
                        for n in range(3000)
                    ],
                },
            ),
        )
        show("template null", s.send("PUT", P + "template/t2", {"name": "N2"}))
        show(
            "row",
            s.send(
                "PUT",
                P + "db_row/r1",
                {
                    "database_uuid": "db1",
                    "values": [
                        {"name": "a", "value_text": "delta"},
                        {"name": "a", "value_text": "delta2"},
                    ],
                },
            ),
        )
        show(
            "row value int",
            s.send(
                "PUT",
                P + "db_row/r2",
                {"database_uuid": "db1", "values": [{"name": "a", "value_text": 5}]},
            ),
        )
        show("comment", s.send("PUT", P + "comment/c1", {"page_uuid": "p1", "text": "epsilon"}))
        show(
            "content before", s.client.put(P + "file/f1/content", content=b"x", headers=s.headers())
        )
        show("file", s.send("PUT", P + "file/f1", {"page_uuid": "p1", "name": "a.pdf"}))
        show(
            "content enc",
            s.client.put(
                P + "file/f1/content",
                content=pdfs.laid_out([[("body", "Zeta words")]], password="x"),
                headers=s.headers(),
            ),
        )
        show("file2", s.send("PUT", P + "file/f2", {"page_uuid": "p1", "name": "a.md"}))
        show(
            "content",
            s.client.put(
                P + "file/f2/content", content=b"# Eta\n\nTheta marmots.", headers=s.headers()
            ),
        )
        show(
            "content docx",
            s.client.put(P + "file/f2/content", content=b"PK\x03\x04junk", headers=s.headers()),
        )
        show(
            "content html",
            s.client.put(
                P + "file/f2/content",
                content=b"<!DOCTYPE html><html><body>Iota</body></html>",
                headers=s.headers(),
            ),
        )
        show("content empty", s.client.put(P + "file/f2/content", content=b"", headers=s.headers()))

        def big():
            for _ in range(51):
                yield b"a" * (1 << 20)

        show("content big", s.client.put(P + "file/f2/content", content=big(), headers=s.headers()))
        s.sync()
        for one in ("page/p1", "template/t1", "db_row/r1", "comment/c1", "file/f1", "file/f2"):
            show("get " + one, s.send("GET", P + one))
        show("get guest", s.send("GET", P + "page/p1", role="guest", subject="eve"))
        show("get none", s.send("GET", P + "page/none", role="guest", subject="eve"))
        show("get admin other", s.send("GET", P + "page/p1", subject="zed"))
        for hit in s.hits("theta marmots"):
            print(
                "@@ hit",
                {
                    k: hit.get(k)
                    for k in ("source_type", "source_id", "page_uuid", "block_id", "url")
                },
            )
        show(
            "is_secret",
            s.send(
                "PUT",
                P + "file/f2",
                {"page_uuid": "p1", "name": "a.md", "metadata": {"is_secret": True}},
            ),
        )
        print("@@ hits after", s.hits("theta marmots"))
        with s.catalog.database.begin() as c:
            print(
                "@@ uploads",
                c.execute(
                    text(
                        "select document_id, content_sha256 from rag_catalog.uploads where tenant='rev'"
                    )
                ).all(),
            )
        print(
            "@@ blobs",
            [
                p.name
                for p in (shared_installation.home).rglob("*")
                if "blob" in str(p) and p.is_file()
            ][:9],
        )
        # lines
        L = {"Content-Type": "application/x-ndjson"}

        def lines(raw):
            return s.client.post("/rag/records", content=raw, headers={**s.headers(), **L})

        show("1001", lines(b'{"op":"delete","type":"page","id":"x"}\n' * 1001))
        show("16MiB+", lines(b"x" * (16 * 1024 * 1024 + 1)))
        show(
            "mixed",
            lines(
                b'{"op":"put","type":"page","id":"n1","title":"A"}\r\n{"op":"put","type":"wiki","id":"n1"}\n[]\n{"op":"put"}\nnull\n{"op":"delete","type":"block","id":"b1"}\n{"op":"delete","type":"page","id":"n1"}\n{"op":"put","type":"page","id":"\xff"}\n{"op":"put","type":"page","id":"n1","title":"A","title":"B"}'
            ),
        )
        show("empty", lines(b""))
        show(
            "wrong type",
            s.client.post(
                "/rag/records",
                content=b"{}",
                headers={**s.headers(), "Content-Type": "application/json"},
            ),
        )
        show(
            "member", s.client.post("/rag/records", content=b"{}", headers=s.headers(role="member"))
        )

        def rec(objs, q=""):
            return s.client.post(
                "/rag/reconcile" + q,
                content="\n".join(json.dumps(o) for o in objs),
                headers={**s.headers(), **L},
            )

        show(
            "rec block",
            rec(
                [
                    {"type": "block", "id": "b1"},
                    {"type": "page", "id": "p1"},
                    {"type": "wiki", "id": "1"},
                ]
            ),
        )
        show("rec sha", rec([{"type": "page", "id": "p1", "sha256": "0" * 64}]))
        show(
            "rec member",
            s.client.post("/rag/reconcile", content=b"", headers=s.headers(role="member")),
        )
        for n in range(30):
            s.put("comment", f"k{n}", {"page_uuid": "p1", "text": f"c {n}"})
        show("rec apply held", rec([], "?apply=true"))
        show("rec", rec([{"type": "page", "id": "p1"}, {"type": "db_row", "id": "r1"}]))
        show("rec allow", rec([{"type": "page", "id": "p1"}], "?apply=true&allow_deletes=true"))
        show("status", s.send("GET", "/rag/status"))
        s.sync()
        show("status", s.send("GET", "/rag/status"))
        assert False
