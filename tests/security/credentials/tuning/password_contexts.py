"""Contexts in which people write down a password."""

from __future__ import annotations

from tests.security.credentials import transforms as t
from tests.security.credentials.model import Context

PASSWORDS: tuple[Context, ...] = (
    Context("is-end", "The password is «X»"),
    Context("is-stop", "The password is «X». Please change it after the first login."),
    Context("is-quoted", 'The password is "«X»".'),
    Context("is-code", "The password is `«X»` until Friday."),
    Context("colon", "Password: «X»"),
    Context("lower-colon", "user: admin\npassword: «X»\n"),
    Context("bold", "**Password**: «X»"),
    Context("bold-colon", "**Password:** «X»"),
    Context("pw", "pw: «X»"),
    Context("pass", "login admin / pass: «X»"),
    Context("list", "* User: `jane`\n* Password: `«X»`\n"),
    Context("credentials-of", "Username: jane\nPassword: «X»\nURL: https://intra.example.org\n"),
    Context("element", "<login><user>jane</user><password>«X»</password></login>", t.xml_escaped),
    Context("german", "Passwort: «X»"),
    Context("german-sentence", "Das Passwort lautet «X»"),
    Context("german-kennwort", "Benutzer: jane, Kennwort: «X»"),
    Context("spanish", "Contraseña: «X»"),
    Context("spanish-sentence", "La contraseña es «X»"),
    Context("french", "Mot de passe : «X»"),
    Context("french-sentence", "Le mot de passe est «X»"),
    Context(
        "column", "| user | password |\n|---|---|\n| jane | «X» |\n", media_type="text/markdown"
    ),
    Context(
        "csv-column", 'user,password,role\njane,"«X»",admin\n', t.csv_escaped, media_type="text/csv"
    ),
    Context(
        "csv-pin", 'name,PIN\nJane,"«X»"\n', t.csv_escaped, t.with_a_digit, media_type="text/csv"
    ),
    Context("xlsx-column", "User\tPassword\njane\t«X»\n", media_type="xlsx"),
    Context("docx-column", "User\tPassword\njane\t«X»\n", media_type="docx"),
    Context(
        "html-document",
        "<html><body><p>Login</p><p>Password: <code>«X»</code></p></body></html>",
        t.xml_escaped,
        media_type="text/html",
    ),
    Context("key-value", "| | |\n|---|---|\n| User | jane |\n| Password | «X» |\n"),
    Context("chat", "jane: wifi password is «X»"),
    Context("wifi", "Wi-Fi: Guests\nWi-Fi password: «X»\n"),
)
