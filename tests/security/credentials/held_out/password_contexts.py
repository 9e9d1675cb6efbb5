"""Contexts in which people write down a password."""

from __future__ import annotations

from tests.security.credentials import transforms as t
from tests.security.credentials.model import Context

PASSWORDS: tuple[Context, ...] = (
    Context("was", "My old password was «X»"),
    Context("new-is", "Your new password is: «X»"),
    Context("typographic", "The password: “«X»”"),
    Context("root-password", "The root password for db-3 is '«X»'."),
    Context("default", "default password: «X»\n"),
    Context("temporary", "Password (temporary): «X»"),
    Context("equals", "password=«X»"),
    Context("equals-blanks", "password = «X»"),
    Context("upper", "PASSWORD: «X»"),
    Context("passphrase", "passphrase: «X»"),
    Context("pwd", "pwd=«X»"),
    Context("passwd", "passwd: «X»"),
    Context("slash-line", "Login: jane\nPass: «X»\n"),
    Context("italic", "*Password*: «X»"),
    Context("bold-code", "**Password** – `«X»`"),
    Context("html-bold", "<b>Password:</b> «X»<br>", t.xml_escaped),
    Context("element-attribute", '<user name="jane" password="«X»"/>', t.xml_escaped),
    Context("german-sentence", "Das Passwort für den Server ist: «X»"),
    Context("german-zugang", "Zugangsdaten: jane / Passwort: «X»"),
    Context("german-bold", "**Kennwort:** «X»"),
    Context("spanish-lower", "usuario: jane\ncontraseña: «X»\n"),
    Context("spanish-clave", "La clave es: «X»"),
    Context("french-lower", "identifiant : jane\nmot de passe : «X»\n"),
    Context("french-bold", "**Mot de passe** : `«X»`"),
    Context("italian", "La parola d'ordine è: «X»"),
    Context("italian-colon", "Parola d'ordine: «X»"),
    Context("portuguese", "Senha: «X»"),
    Context("portuguese-sentence", "A senha é «X»"),
    Context("dutch", "Wachtwoord: «X»"),
    Context("polish", "Hasło: «X»"),
    Context("swedish", "Lösenord: «X»"),
    Context("russian", "Пароль: «X»"),
    Context("japanese", "パスワード: «X»"),
    Context("chinese", "密码：«X»"),
    Context(
        "column-temporary",
        'user,password (temporary)\njane,"«X»"\n',
        t.csv_escaped,
        media_type="text/csv",
    ),
    Context("column-german", "Name\tPasswort\nJane\t«X»\n", media_type="text/tab-separated-values"),
    Context(
        "pin-column",
        "| Name | PIN |\n|---|---|\n| Jane | «X» |\n",
        None,
        t.with_a_digit,
        media_type="text/markdown",
    ),
    Context(
        "html-column",
        "<html><body><table><tr><th>User</th><th>Password</th></tr>"
        "<tr><td>jane</td><td>«X»</td></tr></table></body></html>",
        t.xml_escaped,
        media_type="text/html",
    ),
    Context("pptx-column", "User\tPassword\njane\t«X»", media_type="pptx"),
    Context("docx-line", "Access\nPassword: «X»", media_type="docx"),
    Context("pdf-column", "User\tPassword\njane\t«X»", media_type="pdf"),
    Context(
        "mail-document",
        "From: a@example.org\nTo: b@example.org\nSubject: access\n\n"
        "Your account is ready.\nPassword: «X»\n",
        media_type="message/rfc822",
    ),
    Context("ticket", "> Password: «X»\n\nDone, works."),
    Context("runbook", "Log in as admin (password: `«X»`)\n"),
)
