"""Contexts with a name before a value: settings, code, tables, sentences."""

from __future__ import annotations

from tests.security.credentials import transforms as t
from tests.security.credentials.model import Context

NAMED: tuple[Context, ...] = (
    Context("dotenv", "APP_ENV=production\n«NAME»=«X»\nAPP_DEBUG=false\n", None, t.without_blanks),
    Context("dotenv-quoted", 'APP_ENV=production\n«NAME»="«X»"\n'),
    Context("yaml", "app:\n  env: production\n  «name»: «X»\n"),
    Context("yaml-quoted", 'app:\n  «name»: "«X»"\n  port: 8080\n'),
    Context("json", '{"env": "production", "«name»": "«X»", "port": 8080}', t.json_escaped),
    Context("toml", '[app]\nenv = "production"\n«name» = "«X»"\n'),
    Context("properties", "app.env=production\napp.«name»=«X»\n"),
    Context(
        "dockerfile", "FROM alpine:3.20\nENV «NAME»=«X»\nRUN apk add curl\n", None, t.without_blanks
    ),
    Context(
        "kubernetes", 'env:\n  - name: «NAME»\n    value: "«X»"\n  - name: PORT\n    value: "80"\n'
    ),
    Context("kubernetes-plain", "env:\n  - name: «NAME»\n    value: «X»\n"),
    Context(
        "compose-list", "services:\n  web:\n    environment:\n      - «NAME»=«X»\n      - PORT=80\n"
    ),
    Context("export", "export «NAME»=«X»\n./run.sh\n", None, t.without_blanks),
    Context("export-quoted", "export «NAME»='«X»'\n"),
    Context("python", 'import os\n\n«NAME» = "«X»"\n'),
    Context("python-environ", "os.environ['«NAME»'] = '«X»'"),
    Context("python-keyword", "connect(host='db', «name»='«X»', port=1)"),
    Context("python-dict", "config = {'«name»': '«X»', 'port': 80}"),
    Context("js", "const «name» = '«X»';"),
    Context("php-env", "'«name»' => env('«NAME»', '«X»'),"),
    Context("php-define", "define('«NAME»', '«X»');"),
    Context("xml", "<app><«name»>«X»</«name»><port>80</port></app>", t.xml_escaped),
    Context("hcl", 'resource "app" "web" {\n  «name» = "«X»"\n}\n'),
    Context("prose-is", "The «label» is «X»"),
    Context("prose-is-code", "The «label» is `«X»`, as before."),
    Context("label-colon", "«label»: «X»"),
    Context("label-bold", "**«label»**: «X»"),
    Context("label-bold-code", "**«label»:** `«X»`"),
    Context("list-label", "- host: db-3\n- «label»: «X»\n- port: 5432\n"),
    Context("table-row", "| setting | value |\n|---|---|\n| «label» | «X» |\n| region | eu-1 |\n"),
    Context(
        "table-column",
        "| service | «label» |\n|---|---|\n| mailer | «X» |\n",
        media_type="text/markdown",
    ),
    Context(
        "csv-column",
        'service,"«label»",owner\nmailer,"«X»",Jane\n',
        t.csv_escaped,
        media_type="text/csv",
    ),
    Context(
        "csv-key-value",
        'setting,value\nregion,eu-1\n«name»,"«X»"\n',
        t.csv_escaped,
        media_type="text/csv",
    ),
    Context(
        "html-column",
        "<html><body><table><tr><th>service</th><th>«label»</th></tr>"
        "<tr><td>mailer</td><td>«X»</td></tr></table></body></html>",
        t.xml_escaped,
        media_type="text/html",
    ),
    Context("xlsx-column", "service\t«label»\nmailer\t«X»\n", media_type="xlsx"),
    Context("docx-key-value", "setting\tvalue\nregion\teu-1\n«label»\t«X»", media_type="docx"),
    Context("log", "10:12:44 DEBUG config loaded «name»=«X» region=eu-1"),
    Context("header", "curl -H 'X-Api" + "-Key: «X»' https://api.example.org/v1/items"),
    Context("chat", "jane: the «label» is «X»\ntom: thx"),
    Context("comment", "# «NAME»=«X»", None, t.without_blanks),
    Context("no-blank", "«name»:«X»", None, t.without_blanks),
)
