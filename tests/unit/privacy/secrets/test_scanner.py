import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_assets.privacy.secrets.names import find_value_kind
from rag_assets.privacy.secrets.scanner import SecretScanner
from rag_assets.privacy.secrets.spans import SecretSpan, mask, merge_spans, redact
from tests.cost import assert_linear
from tests.unit.privacy.secrets import planted

BEFORE = "é🔒 naïve text: "
AFTER = " and 你好 more."


def found(scanner: SecretScanner, text: str) -> list[str]:
    return [text[span.start : span.end] for span in scanner.scan(text)]


@pytest.mark.slow
@pytest.mark.parametrize("name", planted.TOKENS)
def test_a_token_is_found_at_its_offsets(scanner: SecretScanner, name: str) -> None:
    token = planted.TOKENS[name]
    assert found(scanner, BEFORE + token + AFTER) == [token]


@pytest.mark.parametrize("name", planted.TOKENS)
@pytest.mark.parametrize("edges", ["``", '""', "()", "||", "=\n", ":,", "//"])
def test_a_token_is_found_between_any_marks(scanner: SecretScanner, name: str, edges: str) -> None:
    token = planted.TOKENS[name]
    assert "".join(found(scanner, f"x {edges[0]}{token}{edges[1]} y")).find(token) >= 0


@pytest.mark.parametrize("gap", ["\n", "\r\n", " ", "\u00ad", "\u00ad\n", "\u200b", "\n  "])
@pytest.mark.parametrize("name", planted.TOKENS)
def test_a_wrapped_token_is_found_whole(scanner: SecretScanner, name: str, gap: str) -> None:
    token = planted.TOKENS[name]
    half = len(token) // 2
    wrapped = token[:half] + gap + token[half:]
    assert found(scanner, f"see {wrapped} and so on") == [wrapped]


def test_the_line_after_a_token_is_not_taken_for_its_rest(scanner: SecretScanner) -> None:
    assert found(scanner, f"{planted.GITHUB}\nand then\n") == [planted.GITHUB]
    assert found(scanner, f"{planted.OPENAI} Keep it safe") == [planted.OPENAI]


def test_two_wrapped_tokens_stay_two(scanner: SecretScanner) -> None:
    text = f"{planted.GITHUB}\n{planted.GITHUB}"
    assert [span.start for span in scanner.scan(text)] == [0, len(planted.GITHUB) + 1]


@pytest.mark.parametrize("kind", ["RSA ", "EC ", "", "OPENSSH ", "ENCRYPTED "])
def test_a_private_key_is_one_span(scanner: SecretScanner, kind: str) -> None:
    key = planted.pem(kind=kind)
    assert found(scanner, f"Key:\n\n{key}\n\nText.") == [key]


def test_a_private_key_on_one_line_is_one_span(scanner: SecretScanner) -> None:
    key = planted.pem(kind="").replace("\n", " ")
    assert found(scanner, f"Key: {key} Text.") == [key]


def test_a_truncated_private_key_ends_with_its_body(scanner: SecretScanner) -> None:
    key = planted.pem(kind="").rpartition("\n")[0]
    assert found(scanner, f"Key:\n{key}\n\nOrdinary words follow here.") == [key]


def test_a_line_with_begin_rsa_is_masked_whole(scanner: SecretScanner) -> None:
    line = "It starts with BEGIN " + "RSA and goes on"
    assert found(scanner, f"one\n> {line}\ntwo") == [line]


def test_an_aws_secret_is_found_by_words_beside_it(scanner: SecretScanner) -> None:
    assert found(scanner, f"AWS secret:\n\n    {planted.AWS_SECRET}\n") == [planted.AWS_SECRET]
    far = f"AWS secret {planted.AWS_SECRET}\n" + "word " * 200 + f"\naws: {planted.AWS_SECRET}"
    assert found(scanner, far) == [planted.AWS_SECRET] * 2
    assert found(scanner, f"AWS {'word ' * 200}{planted.AWS_SECRET}") == []
    alone = "commit 0b1f3a5c7e9d2b4f6a8c0e1d3f5b7a9c1e3d5f7b"
    assert found(scanner, f"aws-cli at {alone}") == []


@pytest.mark.parametrize(
    "line",
    [
        *("password = '{}'", 'password: "{}"', "DB_PASSWORD={}", "spring.datasource.password={}"),
        *('{{"password": "{}"}}', "passwd := `{}`", "Password: {}", "PGPASSWORD='{}' psql"),
    ],
)
def test_an_assigned_password_is_found_without_its_name(scanner: SecretScanner, line: str) -> None:
    text = line.format(planted.PASSWORD)
    if "`" in line:
        text = text.replace("`", '"')
    assert found(scanner, text) == [planted.PASSWORD]


@pytest.mark.parametrize(
    "line",
    [
        "password: str", "password: str | None = None",
        "def login(user: str, password: str = field(default='')) -> None:",
        'password = os.environ["DB_PASSWORD_1"]', "password = os.environ.get('DB_PASSWORD')",
        "password = getpass.getpass()", "password = config.password1", "password: ${DB_PASSWORD1}",
        "password: {{ vault_password_1 }}", "password = <your-password-1>",
        'password = "changeme"', 'password = "your-password-here1"', "password=********",
        "password = 'xxxxxxxxxxxx'", "The password: it must hold at least 8 characters.",
        "Passwords: see section 4.2", '"password": "The password to use"',
        "| password | string | required |", "token: str, secret: str = ...",
        "api_key: The key of the API, see https://example.com/v1/keys",
        "secret = hashlib.sha256(data).hexdigest()", "postgresql://user:password@localhost/db",
        "task-internationalization-of-everything and desk-mounted-monitors-20240101",
        "scikit: sk-learn-contrib-imbalanced-learn-extras",
        "An AKIA prefix marks an access key id.", "eyJ is how a JSON Web Token begins.",
        "sha256: 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
        "uuid 123e4567-e89b-12d3-a456-426614174000", "-----BEGIN CERTIFICATE-----",
        "PWD: '/home/somebody1/project'", "passphrase: 'sample'",
    ],
)  # fmt: skip
def test_placeholders_and_code_of_pages_are_not_found(scanner: SecretScanner, line: str) -> None:
    assert found(scanner, line) == []


def test_nothing_is_found_in_the_projects_documentation(scanner: SecretScanner) -> None:
    root = Path(__file__).resolve().parents[4]
    pages = [root / "CONTRIBUTING.md", *sorted((root / "docs").rglob("*.md"))]
    spans = {page.name: found(scanner, page.read_text()) for page in pages}
    assert spans == {page.name: [] for page in pages}


UNITS = [
    "sk" + "-", "sk" + "-a1 ", "gh" + "p_aaaa\n", "gh" + "p_a-", "AK" + "IA ", "ey" + "J", "eyJa.",
    "eyJ-", "password=", "password = ", "aws ", "BEGIN RSA ", "BEGIN PRIVATE KEY ", "A", "\u00ad",
    "A\u00ad", "%41", "<password>", "password is ", "a1B\n", "://", "https://a:", "-u a:", "MII",
    "a1-us1 ", "Q~", "password ", "key ", "&#65;", "Bearer ", "--password ", "password\n",
    "\u0430a", "a:5432:", "token: ", "MTAa", "1\n", "passwort: \n", "[password](",
    "insert into a (password) values ", "password: " + "A" * 200 + "_A!\n", "| pw" + " " * 60 + "|",
    "pass " + "a-" * 90, "password=" + "a." * 90, "token: " + "{" * 90,
    "curl -u a:b1c2d3 https://a\n", "Cookie: a=b; ", "a=b; " * 30 + "-b ", "backup codes ",
    "backup codes: 12345678 ", "log in as a with ", "log in ", " als a mit ", "a / ", "a@b.cd:",
    "WIFI:S:a;", "snmp-server community ", "neighbor ", "\n key ", "radius-server host ", " enc ",
    "net use ", "net use a /user:", "openssl enc -k ", "7z -p", "wlan key ", "recovery key ",
    "123456-", "a1" * 38 + "AZDO", "azure devops ", "PAT ", "the password auf ",
    "password from a1b2c3 to ", "password of a ", "arn:aws:secret:", "/snmp community ",
    "echo a | ",
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("unit", UNITS)
def test_time_is_linear_in_what_a_text_repeats(scanner: SecretScanner, unit: str) -> None:
    assert_linear(lambda size: scanner.scan(unit * (size // len(unit))), 5_000)


def test_overlapping_spans_are_joined() -> None:
    spans = [SecretSpan(5, 9, "b"), SecretSpan(0, 6, "a"), SecretSpan(9, 12, "c"),
             SecretSpan(3, 3, "none")]  # fmt: skip
    assert merge_spans(spans) == [SecretSpan(0, 9, "a"), SecretSpan(9, 12, "c")]


@pytest.mark.slow
def test_compiled_rules_are_kept_in_the_given_folder(tmp_path: Path) -> None:
    (folder := tmp_path / "rules").mkdir(mode=0o700)
    program = (
        "import sys; from pathlib import Path;"
        "from rag_assets.privacy.secrets.scanner import SecretScanner;"
        "SecretScanner(Path(sys.argv[1])).load()"
    )
    written = []
    for _ in range(2):
        subprocess.run([sys.executable, "-c", program, folder], check=True)
        [compiled] = folder.iterdir()
        written.append(compiled.stat().st_mtime_ns)
    assert written[0] == written[1]


def test_scanners_of_a_process_share_the_rules(scanner: SecretScanner, tmp_path: Path) -> None:
    scanner.load()
    SecretScanner(tmp_path).load()
    assert [*tmp_path.iterdir()] == []


@pytest.mark.parametrize("prefix", ["GOCSPX" + "-", "hv" + "s."])
def test_the_name_of_a_value_continues_no_whole_token(scanner: SecretScanner, prefix: str) -> None:
    token = prefix + planted.GITHUB[4:32]
    assert found(scanner, f"{token}\nPrivateKey = a value\n") == [token]
    wrapped = f"{token[:20]}\n{token[20:]}"
    assert found(scanner, f"{wrapped}\n") == [wrapped]


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
def test_a_password_is_found_in_code(scanner: SecretScanner, notation: str, value: str) -> None:
    line = notation.replace("\\n", "\n").replace("X", value)
    spans = found(scanner, f"Kept for later.\n\n{line}\n\nThat is all.\n")
    assert [span.strip("\"'`-") for span in spans] == [value]


@pytest.mark.parametrize(
    "notation",
    [
        "API_KEY=X", "apiKey: 'X'", "api key: X", "client_secret=X&grant_type=x",
        "Authorization: Bearer X", "Authorization: Basic X",
        'headers={"Authorization": "Bearer X"}', "X-Api-Key: X", "--api-key X",
        "<apiKey>X</apiKey>", "The API key is X.", "| API key | X |",
        "//registry.example.org/:_authToken=X", "https://api.example.org/v1?access_token=X",
        "env('API_TOKEN', 'X')", "- name: API_TOKEN\n  value: X",
        "my PAT is X", "PAT=X", "GIT_PAT=X", "AZURE_DEVOPS_PAT: X", '"PAT": "X"',
    ],
)  # fmt: skip
def test_a_key_is_found_without_its_name(scanner: SecretScanner, notation: str) -> None:
    line = KEY.join(notation.rsplit("X", 1))
    assert found(scanner, f"Kept for later.\n\n{line}\n") == [KEY]


@pytest.mark.parametrize(
    "line",
    [
        "curl -u 'admin:<password>' https://example.org/api",
        "docker run -p 8080:8080 -e MYSQL_RANDOM_ROOT_PASSWORD=yes app",
        "--admin-password <custom-admin-password>", "password: $ADMIN_PASSWORD",
        "password: ${{ secrets.ADMIN_PASSWORD }}",
        "'password' => 'required|string|min:12|confirmed',", "'password' => $request->password,",
        "raise ValueError('It is only valid to pass \"detached_payload\" here')",
        "[Authorization]: https://example.org/docs/authorization",
        "Configure [1Password] to use it as a provider.", "- Login Style: `Redirect`",
        "| password | string | The password of the user |", "| token_ttl | 3600 | seconds |",
        "The password is required.", "Das Passwort ist abgelaufen.",
        "La contraseña es obligatoria.", "Le mot de passe est incorrect.",
        "password: str\nuser: str", "interface Login { password: string; user: string; }",
        "const token = await getToken(user);", "token = tokens[0]",
        "Passwords are hashed with bcrypt.", "public_key = 'A'",
        "-----BEGIN PRIVATE KEY-----\n...\n-----END PRIVATE KEY-----",
    ],
)  # fmt: skip
def test_sentences_about_credentials_are_not_found(scanner: SecretScanner, line: str) -> None:
    assert found(scanner, line) == []


ROUTES = (
    "'password' => 'UserController@changePassword',",
    "'secret' => 'Admin\\SecretController@rotate',",
    "'token' => 'OAuth2TokenController@issue',",
    "controllers passwords: 'users/passwords'",
    'post "reset_password" => "login#reset_password"',
    "password: users/passwords#update",
    "password: 'accounts#update'",
    "'password' => 'site/password-reset',",
    '"PASSWORD": "auth:password-reset"',
    "| password | users/passwords#edit |",
)


@pytest.mark.parametrize("line", ROUTES)
def test_handlers_of_routes_are_not_found(scanner: SecretScanner, line: str) -> None:
    assert found(scanner, line) == []


SIGNED_PASSWORDS = (
    *("hunter#2show", "Summer#rain", "dragon@show", "dragon#show", "Dragon::show", "root#secret"),
    *("root:mysecretpass", "dbuser:secret-garden", "admin/mysecretword", "passion/key-lime"),
    *("tiger#moon_river", "root#super_secret", "Xk9fController"),
)


@pytest.mark.parametrize("value", SIGNED_PASSWORDS)
def test_passwords_with_the_signs_of_handlers_are_found(scanner: SecretScanner, value: str) -> None:
    assert found(scanner, f"password: '{value}'") == [value]


@st.composite
def texts_with_spans(draw: st.DrawFn) -> tuple[str, list[SecretSpan]]:
    text = draw(st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=60))
    cuts = sorted(draw(st.lists(st.integers(0, len(text)), max_size=8)))
    return text, [SecretSpan(a, b, "rule") for a, b in list(pairwise(cuts))[::2]]


@pytest.mark.slow
@given(texts_with_spans())
def test_masking_keeps_offsets_and_masks_all_spans(drawn: tuple[str, list[SecretSpan]]) -> None:
    text, spans = drawn
    result = mask(text, spans)
    assert len(result) == len(text)
    inside = {i for span in spans for i in range(span.start, span.end)}
    for i, (old, new) in enumerate(zip(text, result, strict=True)):
        assert len(new.encode()) == len(old.encode())
        if i not in inside or old in "\r\n":
            assert new == old
        else:
            assert new in "*·█🔒"


@pytest.mark.slow
def test_a_title_a_file_name_and_a_query_are_redacted(scanner: SecretScanner) -> None:
    for text in ["Notes on {}", "keys/{}.md", "files:repo/{}/x.md", "why does {} fail?"]:
        for token in planted.TOKENS.values():
            left = redact(text.format(token), scanner)
            assert token not in left
            assert left.startswith(text.partition("{")[0])
    assert redact("How to rotate a password", scanner) == "How to rotate a password"


def test_a_file_name_that_is_not_utf8_can_be_redacted(scanner: SecretScanner) -> None:
    name = f"caf\udce9-{planted.AWS_ID}.md"
    assert redact(name, scanner) == f"caf\udce9-{'*' * 20}.md"


@pytest.mark.parametrize(
    "name",
    ["كلمة المرور", "كلمة السر", "رمز عبور", "گذرواژه", "סיסמה", "הסיסמה", "पासवर्ड", "รหัสผ่าน",
     "Mật khẩu", "Kata sandi", "Κωδικός πρόσβασης", "Palavra-passe", "A jelszavam", "Şifresi",
     "Kata laluan", "পাসওয়ার্ড", "கடவுச்சொல்", "پاس ورڈ", "პაროლი", "Лозинка", "Zaporka", "Salasanani",
     "Wagwoord", "Құпия сөз", "Գաղտնաբառը", "የይለፍ ቃል"],
)  # fmt: skip
def test_a_password_is_found_by_name_in_further_scripts(scanner: SecretScanner, name: str) -> None:
    assert found(scanner, f"{name}: Qw7!xPz92k") == ["Qw7!xPz92k"]


@pytest.mark.parametrize(
    "sentence",
    ["Passordet er X.", "Lösenordet är X.", "Mật khẩu là X.", "Heslo je X.", "Parola este X.",
     "Kata sandi adalah X.", "Ο κωδικός είναι X.", "Slaptažodis yra X.", "Паролата е X."],
)  # fmt: skip
def test_a_password_is_found_after_a_verb(scanner: SecretScanner, sentence: str) -> None:
    assert found(scanner, sentence.replace("X", "Qw7!xPz92k")) == ["Qw7!xPz92k"]
    assert found(scanner, sentence.replace("X", "obligatorie")) == []


@pytest.mark.parametrize("name", ["कूटशब्द", "Xuất khẩu", "كلمة", "ผ่าน", "Κωδικός πελάτη"])
def test_words_that_share_a_part_with_the_name_of_a_password_announce_nothing(name: str) -> None:
    assert find_value_kind(name) is None
