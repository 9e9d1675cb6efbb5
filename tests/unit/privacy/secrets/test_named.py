"""Credentials recognized by a name, in the notations of configuration, code and prose."""

from __future__ import annotations

import pytest

from rag_assets.privacy.secrets.names import find_value_kind
from rag_assets.privacy.secrets.scanner import SecretScanner

VALUE = "Zq7krh" + "H+J6bw"
WORDED = "zozapi" + "sovupoth"
KEY = "8e9a19ab579ee25f" + "db030843a1bfe2b2"

NOTATIONS = """\
DB_PASSWORD=X
export DB_PASSWORD="X"
set DB_PASSWORD=X
ENV DB_PASSWORD X
$env:DB_PASSWORD = "X"
Environment="DB_PASSWORD=X"
docker run -e DB_PASSWORD=X app
kubectl create secret generic db --from-literal=password=X
cfg := Config{Host: "db", Password: "X", Port: 1}
let password: &str = "X";
:password => 'X',
INSERT INTO users (name, password) VALUES ('ada', 'X');
CREATE USER ada IDENTIFIED BY 'X';
Server=db;Database=app;User Id=sa;Password=X;Encrypt=true
jdbc:mysql://db/app?user=a&password=X
<user name="a" password="X"/>
<add key="DbPassword" value="X" />
<entry key="password">X</entry>
<key>password</key>\\n<string>X</string>
<tr><td>Password</td><td>X</td></tr>
<login><password>X</password></login>
Password => X
Your password is: X
The password is "X".
**Password**: X
**Password:** X
- *Password:* `X`
Password (temporary): X
Das Passwort lautet: X
Kennwort: X
Zugangsdaten: admin / X
contraseña: X
La contraseña es `X`.
mot de passe : X
Le mot de passe est "X".
senha: X
wachtwoord: X
пароль: X
パスワード: X
pw: X
Password:\\n\\n    X
spring:\\n  datasource:\\n    password: X
- name: DB_PASSWORD\\n  value: X
{"name": "DB_PASSWORD", "value": "X"}
variable "db_password" {\\n  default = "X"\\n}
env('DB_PASSWORD', 'X')
process.env.DB_PASSWORD || 'X'
${DB_PASSWORD:-X}
os.environ["DB_PASSWORD"] = "X"
{\\"password\\": \\"X\\"}
mysql -u root -p'X' app
curl -u admin:X https://intra.example.org
curl --user "admin:X" https://intra.example.org
tool --password X run
sshpass -p X ssh a@b
machine db\\n  login a\\n  password X
postgres://ada:X@db:5432/app
redis://:X@db:6379/0
password: >-\\n  X""".splitlines()


@pytest.mark.slow
@pytest.mark.parametrize("notation", NOTATIONS)
@pytest.mark.parametrize("value", [VALUE, WORDED], ids=["mixed", "letters"])
def test_a_password_is_found_without_its_name(
    scanner: SecretScanner, notation: str, value: str
) -> None:
    line = notation.replace("\\n", "\n").replace("X", value)
    text = f"Kept for later.\n\n{line}\n\nThat is all.\n"
    found = [text[span.start : span.end].strip("\"'`-") for span in scanner.scan(text)]
    assert found == [value]


@pytest.mark.parametrize(
    "notation",
    [
        "API_KEY=X",
        "apiKey: 'X'",
        "api key: X",
        "client_secret=X&grant_type=x",
        "Authorization: Bearer X",
        "Authorization: Basic X",
        'headers={"Authorization": "Bearer X"}',
        "X-Api-Key: X",
        "--api-key X",
        "<apiKey>X</apiKey>",
        "The API key is X.",
        "| API key | X |",
        "//registry.example.org/:_authToken=X",
        "https://api.example.org/v1?access_token=X",
        "env('API_TOKEN', 'X')",
        "- name: API_TOKEN\n  value: X",
    ],
)
def test_a_key_is_found_without_its_name(scanner: SecretScanner, notation: str) -> None:
    line = KEY.join(notation.rsplit("X", 1))
    text = f"Kept for later.\n\n{line}\n"
    assert [text[span.start : span.end] for span in scanner.scan(text)] == [KEY]


@pytest.mark.parametrize(
    "line",
    [
        "curl -u 'admin:<password>' https://example.org/api",
        "docker run -p 8080:8080 -e MYSQL_RANDOM_ROOT_PASSWORD=yes app",
        "--admin-password <custom-admin-password>",
        "password: $ADMIN_PASSWORD",
        "password: ${{ secrets.ADMIN_PASSWORD }}",
        "'password' => 'required|string|min:12|confirmed',",
        "'password' => $request->password,",
        "raise ValueError('It is only valid to pass \"detached_payload\" here')",
        "[Authorization]: https://example.org/docs/authorization",
        "Configure [1Password] to use it as a provider.",
        "- Login Style: `Redirect`",
        "| password | string | The password of the user |",
        "| token_ttl | 3600 | seconds |",
        "The password is required.",
        "Das Passwort ist abgelaufen.",
        "La contraseña es obligatoria.",
        "Le mot de passe est incorrect.",
        "password: str\nuser: str",
        "interface Login { password: string; user: string; }",
        "const token = await getToken(user);",
        "token = tokens[0]",
        "Passwords are hashed with bcrypt.",
        "public_key = 'A'",
        "-----BEGIN PRIVATE KEY-----\n...\n-----END PRIVATE KEY-----",
    ],
)
def test_sentences_about_credentials_are_not_found(scanner: SecretScanner, line: str) -> None:
    assert [line[span.start : span.end] for span in scanner.scan(line)] == []


@pytest.mark.parametrize(
    "name",
    ["كلمة المرور", "كلمة السر", "رمز عبور", "گذرواژه", "סיסמה", "הסיסמה", "पासवर्ड", "รหัสผ่าน",
     "Mật khẩu", "Kata sandi", "Κωδικός πρόσβασης"],
)  # fmt: skip
def test_a_password_is_found_by_its_name_in_further_scripts(
    scanner: SecretScanner, name: str
) -> None:
    text = f"{name}: Qw7!xPz92k"
    assert [text[span.start : span.end] for span in scanner.scan(text)] == ["Qw7!xPz92k"]


@pytest.mark.parametrize("name", ["कूटशब्द", "Xuất khẩu", "كلمة", "ผ่าน", "Κωδικός πελάτη"])
def test_words_that_share_a_part_with_the_name_of_a_password_announce_nothing(name: str) -> None:
    assert find_value_kind(name) is None
