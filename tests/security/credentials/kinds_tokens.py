"""Tokens recognized by their form: prefixes, lengths and alphabets of their issuers.

Prefixes are written in two halves, so that no line here looks like a credential.
"""

from __future__ import annotations

import base64
from collections.abc import Callable
from random import Random

from tests.security.credentials.model import Credential, Kind
from tests.security.credentials.values import (
    ALNUM,
    DIGITS,
    LETTERS,
    LOWER,
    UPPER,
    URLSAFE,
    base64_of,
    between,
    chars,
    hexa,
    segment,
    uuid,
    whole,
)

Body = Callable[[Random], str]


def _of(alphabet: str, count: int) -> Body:
    return lambda rng: chars(rng, alphabet, count)


def _hex(count: int) -> Body:
    return lambda rng: hexa(rng, count)


def _token(name: str, prefix: str, body: Body, setting: str, label: str) -> Kind:
    """Return a kind with a fixed prefix; "|" marks where the prefix is split."""
    start = prefix.replace("|", "")
    return Kind(name, "token", lambda rng: whole(start + body(rng), setting, label))


def _slack_bot(rng: Random) -> str:
    return f"{chars(rng, DIGITS, 12)}-{chars(rng, DIGITS, 13)}-{chars(rng, ALNUM, 24)}"


def _slack_user(rng: Random) -> str:
    return "-".join([*(chars(rng, DIGITS, 12) for _ in range(3)), hexa(rng, 32)])


def _slack_app(rng: Random) -> str:
    return f"A0{chars(rng, UPPER + DIGITS, 9)}-{chars(rng, DIGITS, 13)}-{hexa(rng, 64)}"


def _openai_old(rng: Random) -> str:
    return chars(rng, ALNUM, 20) + "T3Bl" + "bkFJ" + chars(rng, ALNUM, 20)


def _azure_client(rng: Random) -> Credential:
    middle = "8" + "Q~"
    text = chars(rng, ALNUM, 3) + middle + chars(rng, ALNUM + "_.~-", 34)
    return whole(text, "AZURE_CLIENT_SECRET", "client secret")


def _mailchimp(rng: Random) -> Credential:
    return whole(hexa(rng, 32) + f"-us{rng.randint(1, 21)}", "MAILCHIMP_API_KEY")


def _discord_bot(rng: Random) -> Credential:
    snowflake = str(rng.randint(10**17, 10**18 - 1)).encode()
    first = base64.b64encode(snowflake).decode().rstrip("=")
    rest = f"{chars(rng, ALNUM, 6)}.{chars(rng, URLSAFE, 38)}"
    return whole(f"{first}.{rest}", "DISCORD_TOKEN", "bot token")


def _telegram(rng: Random) -> Credential:
    number = str(rng.randint(10**8, 10**10 - 1))
    return whole(f"{number}:AA{chars(rng, URLSAFE, 33)}", "TELEGRAM_BOT_TOKEN", "bot token")


def _slack_webhook(rng: Random) -> Credential:
    team = f"T{chars(rng, UPPER + DIGITS, 10)}/B{chars(rng, UPPER + DIGITS, 10)}/"
    url = "https://hooks.slack" + ".com/services/" + team
    return between(url, chars(rng, ALNUM, 24), user="https", name="SLACK_WEBHOOK_URL")


def _discord_webhook(rng: Random) -> Credential:
    url = "https://discord" + f".com/api/webhooks/{rng.randint(10**17, 10**18)}/"
    return between(url, chars(rng, URLSAFE, 68), user="https", name="DISCORD_WEBHOOK")


def _sentry_dsn(rng: Random) -> Credential:
    number = rng.randint(10**5, 10**7)
    host = f"@o{number}.ingest.sentry.io/{rng.randint(10**6, 10**8)}"
    return between("https://", hexa(rng, 32), host, name="SENTRY_DSN", label="Sentry DSN")


def _sentry_token(rng: Random) -> str:
    claims = {"iat": rng.random() * 10**9, "url": "https://sentry.io", "org": "acme"}
    head = base64.b64encode(str(claims).replace("'", '"').encode()).decode()
    return f"{head}_{chars(rng, ALNUM + '+/', 43)}"


def _jwt(rng: Random) -> Credential:
    head = segment({"alg": rng.choice(["HS256", "RS256", "ES256"]), "typ": "JWT"})
    claims = segment({"sub": chars(rng, DIGITS, 10), "iat": rng.randint(10**9, 2 * 10**9)})
    return whole(f"{head}.{claims}.{chars(rng, URLSAFE, 43)}", "ACCESS_TOKEN", "access token")


def _jwt_unsigned(rng: Random) -> Credential:
    head = segment({"alg": "none"})
    claims = segment({"sub": chars(rng, LOWER, 8), "admin": True, "jti": uuid(rng)})
    return whole(f"{head}.{claims}.", "ID_TOKEN", "id token")


def _grafana_cloud(rng: Random) -> str:
    claims = f'{{"o":"{rng.randint(10**5, 10**6)}","n":"ci","k":"{chars(rng, ALNUM, 24)}"}}'
    return base64.b64encode(claims.encode()).decode()


def _terraform(rng: Random) -> Credential:
    text = chars(rng, ALNUM, 14) + ".atlas" + "v1." + chars(rng, ALNUM, 67)
    return whole(text, "TFE_TOKEN", "Terraform token")


def _pulumi(rng: Random) -> str:
    return hexa(rng, 40)


def _two(first: int, second: int, joint: str = ".") -> Body:
    return lambda rng: chars(rng, URLSAFE, first) + joint + chars(rng, URLSAFE, second)


KINDS: tuple[Kind, ...] = (
    _token("aws-id", "AK|IA", _of(UPPER + "234567", 16), "AWS_ACCESS_KEY_ID", "access key"),
    _token(
        "aws-session",
        "IQoJb3|JpZ2luX2Vj",
        lambda r: base64_of(r, 240),
        "AWS_SESSION_TOKEN",
        "session token",
    ),
    _token("gcp-api", "AI|za", _of(URLSAFE, 35), "GOOGLE_API_KEY", "API key"),
    _token("google-oauth-secret", "GOC|SPX-", _of(URLSAFE, 28), "CLIENT_SECRET", "client secret"),
    _token("google-access", "ya|29.", _of(URLSAFE, 160), "ACCESS_TOKEN", "access token"),
    Kind("azure-client-secret", "token", _azure_client),
    _token("github-classic", "gh|p_", _of(ALNUM, 36), "GITHUB_TOKEN", "GitHub token"),
    _token("github-fine", "github|_pat_", _two(22, 59, "_"), "GH_TOKEN", "personal access token"),
    _token("github-app", "gh|s_", _of(ALNUM, 36), "GITHUB_TOKEN", "installation token"),
    _token("github-oauth", "gh|o_", _of(ALNUM, 36), "GITHUB_TOKEN", "access token"),
    _token("gitlab", "glp|at-", _of(URLSAFE, 20), "GITLAB_TOKEN", "access token"),
    _token("slack-bot", "xo|xb-", _slack_bot, "SLACK_BOT_TOKEN", "bot token"),
    _token("slack-user", "xo|xp-", _slack_user, "SLACK_TOKEN", "user token"),
    _token("slack-app", "xa|pp-1-", _slack_app, "SLACK_APP_TOKEN", "app token"),
    Kind("slack-webhook", "token", _slack_webhook),
    _token("stripe-secret", "sk|_live_", _of(ALNUM, 24), "STRIPE_SECRET_KEY", "secret key"),
    _token("stripe-restricted", "rk|_live_", _of(ALNUM, 99), "STRIPE_KEY", "restricted key"),
    _token("stripe-webhook", "wh|sec_", _of(ALNUM, 32), "WEBHOOK_SECRET", "signing secret"),
    _token("openai-old", "s|k-", _openai_old, "OPENAI_API_KEY", "API key"),
    _token("openai-project", "sk|-proj-", _of(URLSAFE, 124), "OPENAI_API_KEY", "API key"),
    _token(
        "anthropic",
        "sk|-ant-api03-",
        lambda r: chars(r, URLSAFE, 93) + "AA",
        "ANTHROPIC_API_KEY",
        "API key",
    ),
    _token("hugging-face", "h|f_", _of(LETTERS, 34), "HF_TOKEN", "access token"),
    _token("vault-service", "hv|s.", _of(URLSAFE, 95), "VAULT_TOKEN", "Vault token"),
    _token("vault-old", "s|.", _of(ALNUM, 24), "VAULT_TOKEN", "Vault token"),
    _token("npm", "np|m_", _of(ALNUM, 36), "NPM_TOKEN", "npm token"),
    _token("pypi", "pypi|-AgEIcHlwaS5vcmc", _of(URLSAFE, 150), "TWINE_PASSWORD", "PyPI token"),
    _token("docker", "dckr|_pat_", _of(URLSAFE, 27), "DOCKER_TOKEN", "access token"),
    _token("twilio", "S|K", _hex(32), "TWILIO_API_KEY", "API key"),
    _token("sendgrid", "S|G.", _two(22, 43), "SENDGRID_API_KEY", "API key"),
    _token("mailgun", "ke|y-", _hex(32), "MAILGUN_API_KEY", "API key"),
    Kind("mailchimp", "token", _mailchimp),
    Kind("discord-bot", "token", _discord_bot),
    Kind("discord-webhook", "token", _discord_webhook),
    Kind("telegram", "token", _telegram),
    Kind("sentry-dsn", "token", _sentry_dsn),
    _token("sentry-token", "sntr|ys_", _sentry_token, "SENTRY_AUTH_TOKEN", "auth token"),
    _token("square-access", "sq0|atp-", _of(URLSAFE, 22), "SQUARE_TOKEN", "access token"),
    _token("square-secret", "sq0|csp-", _of(URLSAFE, 43), "SQUARE_SECRET", "application secret"),
    _token("shopify", "shp|at_", _hex(32), "SHOPIFY_TOKEN", "access token"),
    _token("digitalocean", "dop|_v1_", _hex(64), "DIGITALOCEAN_TOKEN", "access token"),
    _token("heroku", "HR|KU-", uuid, "HEROKU_API_KEY", "API key"),
    _token("linear", "lin|_api_", _of(ALNUM, 40), "LINEAR_API_KEY", "API key"),
    _token("notion-old", "secr|et_", _of(ALNUM, 43), "NOTION_TOKEN", "integration token"),
    _token("notion", "nt|n_", _of(ALNUM, 46), "NOTION_TOKEN", "integration token"),
    _token("figma", "fig|d_", _of(URLSAFE, 40), "FIGMA_TOKEN", "personal access token"),
    _token(
        "atlassian",
        "ATA|TT3xFfGF0",
        lambda r: chars(r, URLSAFE, 171) + "=" + hexa(r, 8).upper(),
        "JIRA_API_TOKEN",
        "API token",
    ),
    _token("new-relic", "NR|AK-", _of(UPPER + DIGITS, 27), "NEW_RELIC_KEY", "user key"),
    _token(
        "grafana-service",
        "gls|a_",
        lambda r: f"{chars(r, ALNUM, 32)}_{hexa(r, 8)}",
        "GRAFANA_TOKEN",
        "service account token",
    ),
    _token("grafana-cloud", "gl|c_", _grafana_cloud, "GRAFANA_TOKEN", "access policy token"),
    _token("databricks", "da|pi", _hex(32), "DATABRICKS_TOKEN", "access token"),
    Kind("terraform", "token", _terraform),
    Kind("jwt", "token", _jwt),
    Kind("jwt-unsigned", "token", _jwt_unsigned),
    _token(
        "age",
        "AGE-SECRET|-KEY-1",
        _of("QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L", 58),
        "AGE_KEY",
        "age key",
    ),
    _token("rag-assets", "ra|g_", _of(URLSAFE, 43), "RAG_ASSETS_TOKEN", "service token"),
    _token("groq", "gs|k_", _of(ALNUM, 52), "GROQ_API_KEY", "API key"),
    _token("rubygems", "ruby|gems_", _hex(48), "GEM_HOST_API_KEY", "API key"),
    _token("supabase", "sb|p_", _hex(40), "SUPABASE_ACCESS_TOKEN", "access token"),
    _token("doppler", "dp.|pt.", _of(ALNUM, 43), "DOPPLER_TOKEN", "personal token"),
    _token(
        "postman", "PM|AK-", lambda r: f"{hexa(r, 24)}-{hexa(r, 34)}", "POSTMAN_API_KEY", "API key"
    ),
    _token(
        "brevo",
        "xkey|sib-",
        lambda r: f"{hexa(r, 64)}-{chars(r, ALNUM, 16)}",
        "BREVO_API_KEY",
        "API key",
    ),
    _token(
        "tailscale",
        "tskey|-auth-",
        lambda r: f"k{chars(r, ALNUM, 11)}-{chars(r, ALNUM, 32)}",
        "TS_AUTHKEY",
        "auth key",
    ),
    _token("pulumi", "pu|l-", _pulumi, "PULUMI_ACCESS_TOKEN", "access token"),
)
