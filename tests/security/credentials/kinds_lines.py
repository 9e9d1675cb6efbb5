"""Lines around a password: URIs, connection strings, commands, headers, lines of known files."""

from __future__ import annotations

import base64
from collections.abc import Callable
from random import Random
from urllib.parse import quote

from tests.security.credentials.model import Credential, Kind
from tests.security.credentials.values import (
    ALNUM,
    DIGITS,
    LETTERS,
    URLSAFE,
    base64_of,
    between,
    chars,
    hexa,
)

_USERS = ("app", "admin", "svc_report", "jane", "root", "deploy", "reader")
_HOSTS = ("db.internal", "10.0.4.17", "mail.example.org", "cache", "data-3.eu.example.com")
_WORDS = ("Harbor", "Winter", "lantern", "Zebra", "copper", "meadow", "falcon", "thunder")


def _secret(rng: Random) -> str:
    """Return a simple password, which needs no quotes in a command."""
    if rng.random() < 0.5:
        return rng.choice(_WORDS) + rng.choice(_WORDS) + chars(rng, DIGITS, rng.randint(2, 4))
    return chars(rng, LETTERS, 2) + chars(rng, ALNUM + "!_-+", rng.randint(8, 16)) + "9"


def _uri(form: str) -> Callable[[Random], Credential]:
    """Return a maker of URIs; in the form, "U" is the user, "S" the secret, "H" the host."""

    def make(rng: Random) -> Credential:
        user, host = rng.choice(_USERS), rng.choice(_HOSTS)
        before, _, after = form.partition("{S}")
        before = before.replace("{U}", user).replace("{H}", host)
        after = after.replace("{U}", user).replace("{H}", host)
        mark = f"{user}:" if f"{user}:" in before else ""
        return between(before, _secret(rng), after, name="DATABASE_URL", user=mark)

    return make


def _odd_uri(rng: Random) -> Credential:
    """Return a URI whose password has percent-encoded characters."""
    secret = quote(chars(rng, LETTERS, 4) + "@/#" + chars(rng, ALNUM, 6), safe="")
    user = rng.choice(_USERS)
    return between(f"postgresql://{user}:", secret, "@db:5432/app", user=f"{user}:")


def _sas(rng: Random) -> Credential:
    sig = quote(base64_of(rng, 32), safe="")
    url = "https://acme.blob.core.windows.net/files/report.pdf?sv=2023-11-03&se=2027-01-01&sr=b"
    return between(url + "&sp=r&s" + "ig=", sig, name="SAS_URL", label="SAS URL")


def _account_string(rng: Random) -> Credential:
    before = "DefaultEndpointsProtocol=https;AccountName=acmefiles;Account" + "Key="
    after = ";EndpointSuffix=core.windows.net"
    return between(before, base64_of(rng, 64), after, name="AZURE_STORAGE_CONNECTION_STRING")


def _basic(rng: Random) -> Credential:
    pair = base64.b64encode(f"{rng.choice(_USERS)}:{_secret(rng)}".encode()).decode()
    return between("Authorization: " + "Basic ", pair)


def _bearer(rng: Random) -> Credential:
    return between("Authorization: " + "Bearer ", chars(rng, URLSAFE, rng.randint(20, 60)))


def _bearer_odd(rng: Random) -> Credential:
    return between("Authorization: " + "Bearer ", "-".join(chars(rng, LETTERS, 6) for _ in "abc"))


def _htpasswd_bcrypt(rng: Random) -> Credential:
    digest = "$2" + "y$10$" + chars(rng, ALNUM + "./", 53)
    return between(f"{rng.choice(_USERS)}:", digest, user="")


def _htpasswd_apr1(rng: Random) -> Credential:
    digest = "$ap" + "r1$" + chars(rng, ALNUM, 8) + "$" + chars(rng, ALNUM + "./", 22)
    return between(f"{rng.choice(_USERS)}:", digest)


def _shadow(rng: Random) -> Credential:
    digest = "$" + "6$" + chars(rng, ALNUM, 16) + "$" + chars(rng, ALNUM + "./", 86)
    return between(f"{rng.choice(_USERS)}:", digest, ":19432:0:99999:7:::")


def _netrc(rng: Random) -> Credential:
    user = rng.choice(_USERS)
    return between(f"machine {rng.choice(_HOSTS)} login {user} password ", _secret(rng))


def _pgpass(rng: Random) -> Credential:
    user = rng.choice(_USERS)
    return between(f"{rng.choice(_HOSTS)}:5432:sales:{user}:", _secret(rng), user=f"{user}:")


def _command(before: str, after: str = "") -> Callable[[Random], Credential]:
    def make(rng: Random) -> Credential:
        user, host = rng.choice(_USERS), rng.choice(_HOSTS)
        head = before.replace("{U}", user).replace("{H}", host)
        tail = after.replace("{U}", user).replace("{H}", host)
        mark = f"{user}:" if head.endswith(f"{user}:") else ""
        return between(head, _secret(rng), tail, user=mark)

    return make


def _npmrc(rng: Random) -> Credential:
    body = chars(rng, ALNUM, 8) + "-" + hexa(rng, 24)
    return between("//registry.example.org/:_auth" + "Token=", body, name="NPM_CONFIG")


def _header(rng: Random) -> Credential:
    return between("X-Api" + "-Key: ", chars(rng, ALNUM, 32))


def _docker_auth(rng: Random) -> Credential:
    pair = base64.b64encode(f"{rng.choice(_USERS)}:{_secret(rng)}".encode()).decode()
    return between('"registry.example.org": {"au' + 'th": "', pair, '"}')


def _wireguard_line(rng: Random) -> Credential:
    return between("Private" + "Key = ", base64_of(rng, 32), name="WG_KEY")


def _sql(rng: Random) -> Credential:
    user = rng.choice(_USERS)
    return between(f"ALTER USER {user} WITH PASS" + "WORD '", _secret(rng), "';")


def _identified(rng: Random) -> Credential:
    before = f"CREATE USER '{rng.choice(_USERS)}'@'%' IDENTIFIED " + "BY '"
    return between(before, _secret(rng), "';")


def _query(rng: Random) -> Credential:
    before = "https://api.example.org/v2/items?limit=50&access_" + "token="
    return between(before, chars(rng, ALNUM, 32), "&page=2")


def _otp(rng: Random) -> Credential:
    secret = chars(rng, "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567", 32)
    return between("otpauth://totp/Acme:jane?sec" + "ret=", secret, "&issuer=Acme")


def _line(name: str, make: Callable[[Random], Credential], *, whole_line: bool = False) -> Kind:
    return Kind(name, "line", make, whole_line=whole_line)


KINDS: tuple[Kind, ...] = (
    _line("uri-postgres", _uri("postgresql://{U}:{S}@{H}:5432/sales")),
    _line("uri-mysql", _uri("mysql+pymysql://{U}:{S}@{H}/shop?charset=utf8mb4")),
    _line("uri-mongodb", _uri("mongodb+srv://{U}:{S}@{H}/orders?retryWrites=true")),
    _line("uri-redis", _uri("redis://:{S}@{H}:6379/0")),
    _line("uri-amqp", _uri("amqps://{U}:{S}@{H}:5671/%2F")),
    _line("uri-ftp", _uri("ftp://{U}:{S}@{H}/pub/data")),
    _line("uri-smtp", _uri("smtp://{U}:{S}@{H}:587")),
    _line("uri-https", _uri("https://{U}:{S}@{H}/repo.git")),
    _line("uri-snowflake", _uri("snowflake://{U}:{S}@xy12345.eu-central-1/PROD/PUBLIC")),
    _line("uri-encoded", _odd_uri),
    _line("jdbc", _uri("jdbc:postgresql://{H}:5432/app?user={U}&password={S}&ssl=true")),
    _line("jdbc-sqlserver", _uri("jdbc:sqlserver://{H};databaseName=crm;user={U};password={S};")),
    _line("odbc", _uri("Driver={ODBC Driver 18 for SQL Server};Server={H};UID={U};PWD={S};")),
    _line("ado", _uri("Server={H};Database=crm;User Id={U};Password={S};Encrypt=true")),
    _line("azure-connection", _account_string),
    _line("azure-sas", _sas),
    _line("bearer", _bearer),
    _line("bearer-letters", _bearer_odd),
    _line("basic", _basic),
    _line("api-key-header", _header),
    _line("curl-user", _command("curl -u {U}:", " https://{H}/api/v1/status")),
    _line("curl-user-long", _command('curl -sS --user "{U}:', '" https://{H}/health')),
    _line("mysql-p", _command("mysql -h {H} -u {U} -p", " shop")),
    _line("password-flag", _command("backup --host {H} --user {U} --password ", " --all")),
    _line("password-flag-equals", _command("mongosh --username {U} --password=", " {H}/orders")),
    _line("sshpass", _command("sshpass -p ", " ssh {U}@{H} uptime")),
    _line("docker-login", _command("docker login -u {U} -p ", " registry.example.org")),
    _line("pgpassword", _command("PGPASS" + "WORD=", " psql -h {H} -U {U} sales")),
    _line("redis-cli", _command("redis-cli -h {H} -a ", " INFO")),
    _line("openssl-pass", _command("openssl rsa -in key.pem -passin pass:", " -out plain.pem")),
    _line("from-literal", _command("kubectl create secret generic db --from-literal=password=")),
    _line("query-string", _query),
    _line("otpauth", _otp),
    _line("sql-password", _sql),
    _line("sql-identified", _identified),
    _line("docker-auth", _docker_auth),
    _line("netrc", _netrc, whole_line=True),
    _line("pgpass", _pgpass, whole_line=True),
    _line("npmrc", _npmrc, whole_line=True),
    _line("htpasswd-bcrypt", _htpasswd_bcrypt, whole_line=True),
    _line("htpasswd-apr1", _htpasswd_apr1, whole_line=True),
    _line("shadow", _shadow, whole_line=True),
    _line("wireguard-line", _wireguard_line, whole_line=True),
)
