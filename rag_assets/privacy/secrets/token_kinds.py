"""Kinds of tokens with a known prefix."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import partial

from rag_assets.privacy.secrets.placeholders import is_documented, is_token_placeholder
from rag_assets.privacy.secrets.rules import Rule
from rag_assets.privacy.secrets.tokens import TokenKind, find_tokens
from rag_assets.privacy.secrets.values import is_mixed, is_random, is_token_body

_WORD = re.compile("[A-Za-z0-9]*")
_DASHED = re.compile("[A-Za-z0-9_-]*")


def _token(
    name: str,
    anchors: str,
    prefix: str,
    body: str,
    accepts: Callable[[str], bool] = is_token_body,
    run: re.Pattern[str] = _DASHED,
) -> Rule:
    kind = TokenKind(name, re.compile(prefix), re.compile(body), run, accepts)
    return Rule(tuple(anchors.split()), partial(find_tokens, kind))


def _plain(name: str, prefixes: str, body: str) -> Rule:
    """Return the rule for a kind of token with literal prefixes."""
    listed = "|".join(map(re.escape, prefixes.split()))
    return _token(name, prefixes.lower(), f"(?:{listed})", body)


def _hex(prefix: str) -> str:
    """Return anchors for a prefix that is too common alone: the prefix plus each hex digit."""
    return " ".join(prefix + digit for digit in "0123456789abcdef")


_PLAIN_OPENAI = re.compile(r"[A-Za-z0-9]{20,}")


def _openai_like(body: str) -> bool:
    # Hyphenated tokens look like any hyphenated name unless they mix digits and capitals.
    return is_token_body(body) and (_PLAIN_OPENAI.search(body) is not None or is_random(body))


def _is_no_placeholder(body: str) -> bool:
    return not is_token_placeholder(body)


def _has_digit(body: str) -> bool:
    return any(map(str.isdigit, body)) and not is_token_placeholder(body)


def _is_mixed_key(body: str) -> bool:
    return is_mixed(body) and is_token_body(body)


def _is_no_documented_jwt(body: str) -> bool:
    return not is_documented(body.lower())


RULES: Sequence[Rule] = (
    _token("openai-key", "sk-", "sk-", r"[A-Za-z0-9_-]{20,}", _openai_like),
    _token("github-token", "ghp_ gho_ ghu_ ghs_ ghr_", "gh[pousr]_", r"[A-Za-z0-9]{20,}"),
    _plain("github-pat", "github_pat_", r"[A-Za-z0-9_-]{20,}"),
    _token(
        "aws-access-key-id", "akia asia abia acca a3t", "(?:A[KS]IA|ABIA|ACCA|A3T[A-Z0-9])",
        r"[A-Z0-9]{16}(?![A-Za-z0-9])", _is_no_placeholder, _WORD,
    ),
    _plain("aws-session-token", "IQoJb3JpZ2lu FwoGZXIvYXdz FQoGZXIvYXdz", r"[A-Za-z0-9+/]{40,}={0,2}"),
    _plain("aws-bedrock-key", "ABSK bedrock-api-key-", r"[A-Za-z0-9+/]{40,}={0,2}"),
    _token(
        "slack-token", "xoxa- xoxb- xoxe- xoxo- xoxp- xoxr- xoxs- xoxd- xoxc- xoxe.xox xapp-",
        r"(?:xox[abcdeoprs]-|xoxe\.xox[bp]-|xapp-)", r"[A-Za-z0-9-]{10,}", _has_digit,
    ),
    _token("jwt", "eyj", "eyJ", r"[\w-]{5,}\.[\w-]{5,}\.[\w-]*".replace(r"\w", "A-Za-z0-9_"), _is_no_documented_jwt),
    _token("jwe", "eyj", "eyJ", r"[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]*){4}", _is_no_documented_jwt),
    _plain("grafana-key", "eyJrIjoi", r"[A-Za-z0-9+/]{40,}={0,3}"),
    _plain("rag-assets-token", "rag_", r"[A-Za-z0-9_-]{32,}"),
    _token("stripe-key", "sk_ rk_", "(?:sk|rk)_(?:live|test|prod)_", r"[A-Za-z0-9]{10,}"),
    _plain("stripe-webhook-secret", "whsec_", r"[A-Za-z0-9+/]{20,}={0,2}"),
    _plain("google-api-key", "AIza", r"[A-Za-z0-9_-]{35}"),
    _plain("google-oauth-secret", "GOCSPX-", r"[A-Za-z0-9_-]{20,}"),
    _token("google-oauth-token", "ya29.", r"ya29\.", r"[A-Za-z0-9_-]{20,}(?:\.[A-Za-z0-9_-]+)*"),
    _token("google-refresh-token", "1//0", "1//0", r"[A-Za-z0-9_-]{30,}"),
    _plain("hugging-face-token", "hf_ api_org_", r"[A-Za-z0-9]{20,}"),
    _token("vault-token", "hvs. hvb. hvr.", r"hv[sbr]\.", r"[A-Za-z0-9_-]{20,}"),
    _token(
        "gitlab-token",
        "glpat- gldt- glrt- glrtr- glptt- glcbt- glft- glsoat- glimt- glagent- gloas- glffct- glwt-",
        "gl(?:pat|dt|rtr|rt|ptt|cbt|ft|soat|imt|agent|oas|ffct|wt)-",
        r"[A-Za-z0-9_-]{20,}(?:\.[0-9a-z]{2}[0-9a-z]{7})?(?:\.[0-9a-z]{2,12})*",
    ),
    _plain("gitlab-runner-token", "GR1348941", r"[A-Za-z0-9_-]{20,}"),
    _plain("npm-token", "npm_", r"[A-Za-z0-9]{30,}"),
    _plain("pypi-token", "pypi-", r"[A-Za-z0-9_-]{30,}"),
    _plain("rubygems-key", "rubygems_", r"[A-Fa-f0-9]{40,}"),
    _plain("docker-token", "dckr_pat_ dckr_oat_", r"[A-Za-z0-9_-]{20,}"),
    _token("twilio-key", " ".join(f"sk{digit}" for digit in "0123456789abcdef"), "SK", r"[0-9a-fA-F]{32}(?![A-Za-z0-9])", is_token_body, _WORD),
    _token("sendgrid-key", "sg.", r"SG\.", r"[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}"),
    _token("mailgun-key", "key-", "key-", r"[0-9a-f]{32}(?![A-Za-z0-9])"),
    _token("sendinblue-key", "xkeysib- xsmtpsib-", "x(?:key|smtp)sib-", r"[0-9a-f]{32,}-[A-Za-z0-9]{8,}"),
    _plain("sentry-token", "sntrys_ sntryu_ sntrya_ sntryi_", r"[A-Za-z0-9+/_=-]{20,}"),
    _plain("square-token", "sq0atp- sq0csp- sq0ids- EAAA", r"[A-Za-z0-9_-]{22,}"),
    _plain("facebook-token", "EAAB EAAC EAAG EAAM EAAE", r"[A-Za-z0-9]{40,}"),
    _token(
        "shopify-token", "shpat_ shpca_ shppa_ shpss_ shptka_", "shp(?:at|ca|pa|ss|tka)_",
        r"[A-Fa-f0-9]{32}",
    ),
    _token("digitalocean-token", "dop_v1_ doo_v1_ dor_v1_", "do[opr]_v1_", r"[a-f0-9]{40,}"),
    _plain("heroku-key", "HRKU-", r"[A-Za-z0-9_-]{30,}"),
    _plain("linear-key", "lin_api_ lin_oauth_", r"[A-Za-z0-9]{30,}"),
    _plain("notion-token", "ntn_ secret_", r"[A-Za-z0-9]{40,}"),
    _plain("figma-token", "figd_ figu_ figo_", r"[A-Za-z0-9_-]{30,}"),
    _plain("atlassian-token", "ATATT3 ATCTT3 ATBB ATSTT3", r"[A-Za-z0-9_=-]{24,}"),
    _token("new-relic-key", "nrak- nrii- nrjs- nrra- nriq- nraa- nrsp-", "NR(?:AK|II|JS|RA|IQ|AA|SP)-",
           r"[A-Za-z0-9_-]{19,}"),
    _token("grafana-token", "glsa_ glc_", "gl(?:sa|c)_", r"[A-Za-z0-9+/_]{30,}={0,3}"),
    _token("databricks-token", "dapi dkea dosa dose", "(?:dapi|dkea|dosa|dose)",
           r"[a-f0-9]{32}(?:-\d)?(?![A-Za-z0-9])", is_token_body, _WORD),
    _plain("age-key", "AGE-SECRET-KEY-1", r"[A-Z0-9]{50,}"),
    _token("laravel-key", "base64:", "base64:", r"[A-Za-z0-9+/]{22,86}={1,2}"),
    _plain("planetscale-token", "pscale_tkn_ pscale_pw_ pscale_oauth_", r"[A-Za-z0-9_.=-]{20,}"),
    _plain("postman-key", "PMAK-", r"[a-f0-9]{24}-[a-f0-9]{34}"),
    _plain("pulumi-token", "pul-", r"[a-f0-9]{40}"),
    _plain("prefect-token", "pnu_ pnb_", r"[A-Za-z0-9]{30,}"),
    _plain("readme-key", "rdme_", r"[a-z0-9]{50,}"),
    _token("shippo-token", "shippo_", "shippo_(?:live|test)_", r"[A-Fa-f0-9]{40}"),
    _token("duffel-token", "duffel_", "duffel_(?:live|test)_", r"[A-Za-z0-9_=-]{40,}"),
    _token("dynatrace-token", "dt0", r"dt0[a-z]\d{2}\.", r"[A-Za-z0-9]{24}\.[A-Za-z0-9]{64}"),
    _plain("easypost-key", "EZAK EZTK", r"[A-Za-z0-9]{54}"),
    _token("flutterwave-key", "flwseck", "FLWSECK(?:_TEST)?-", r"[A-Za-z0-9]{12,}(?:-X)?"),
    _plain("frameio-token", "fio-u-", r"[A-Za-z0-9_=-]{40,}"),
    _plain("fly-token", "fo1_ fm1r_ fm1a_ fm2_", r"[A-Za-z0-9+/_-]{40,}={0,3}"),
    _plain("infracost-key", "ico-", r"[A-Za-z0-9]{32}"),
    _plain("adobe-secret", "p8e-", r"[A-Za-z0-9_-]{28,}"),
    _token("1password-key", "a3-", "A3-", r"[A-Z0-9]{6}(?:-[A-Z0-9]{5,11}){4,5}"),
    _plain("1password-token", "ops_eyJ", r"[A-Za-z0-9+/]{40,}={0,3}"),
    _plain("artifactory-key", "AKCp cmVmd", r"[A-Za-z0-9]{59,}"),
    _plain("clojars-token", "CLOJARS_", r"[a-z0-9]{50,}"),
    _token("doppler-token", "dp.", r"dp\.(?:pt|st|ct|sa|scim|audit)\.", r"(?:[a-z0-9_-]{2,40}\.)?[A-Za-z0-9]{40,}"),
    _plain("alibaba-key", "LTAI", r"[A-Za-z0-9]{16,24}"),
    _plain("tencent-key", "AKID", r"[A-Za-z0-9]{28,36}"),
    _plain("octopus-key", "API-", r"[A-Z0-9]{26}"),
    _plain("openshift-token", "sha256~", r"[A-Za-z0-9_-]{40,}"),
    _plain("perplexity-key", "pplx-", r"[A-Za-z0-9]{40,}"),
    _plain("groq-key", "gsk_", r"[A-Za-z0-9]{40,}"),
    _plain("xai-key", "xai-", r"[A-Za-z0-9]{60,}"),
    _plain("replicate-token", "r8_", r"[A-Za-z0-9]{30,}"),
    _plain("nvidia-key", "nvapi-", r"[A-Za-z0-9_-]{40,}"),
    _plain("tavily-key", "tvly-", r"[A-Za-z0-9-]{28,}"),
    _plain("jina-key", "jina_", r"[A-Za-z0-9_-]{40,}"),
    _plain("langsmith-key", "lsv2_pt_ lsv2_sk_", r"[A-Za-z0-9_]{30,}"),
    _plain("pinecone-key", "pcsk_", r"[A-Za-z0-9_]{30,}"),
    _plain("sourcegraph-token", "sgp_ slk_", r"[A-Fa-f0-9_]{40,}"),
    _plain("typeform-token", "tfp_", r"[A-Za-z0-9_.=-]{40,}"),
    _token("resend-key", "re_", "re_", r"[A-Za-z0-9]{6,10}_[A-Za-z0-9]{20,}"),
    _plain("posthog-key", "phx_", r"[A-Za-z0-9]{30,}"),
    _plain("supabase-key", "sbp_ sb_secret_", r"[A-Za-z0-9_-]{20,}"),
    _plain("netlify-token", "nfp_ nfc_", r"[A-Za-z0-9]{30,}"),
    _token("cloudflare-key", "v1.0-", r"v1\.0-", r"[a-f0-9]{24}-[a-f0-9]{100,}"),
    _plain("circleci-token", "CCIPAT_ CCIPRJ_", r"[A-Za-z0-9_]{30,}"),
    _plain("buildkite-token", "bkua_ bkaj_", r"[a-z0-9]{30,}"),
    _plain("sonar-token", "squ_ sqp_ sqa_", r"[a-f0-9]{40}"),
    _plain("contentful-token", "CFPAT-", r"[A-Za-z0-9_-]{40,}"),
    _token("dropbox-token", "sl.", r"sl\.", r"[A-Za-z0-9_-]{100,}"),
    _token("mapbox-token", "sk.eyj", r"sk\.eyJ", r"[A-Za-z0-9_-]{20,}\.[A-Za-z0-9_-]{10,}"),
    _plain("adafruit-key", "aio_", r"[A-Za-z0-9]{28}"),
    _token("yandex-token", "t1. aqvn y0_", r"(?:t1\.|AQVN|y0_)", r"[A-Za-z0-9_-]{30,}={0,2}(?:\.[A-Za-z0-9_-]{40,}={0,2})?"),
    _plain("tailscale-key", "tskey-", r"[A-Za-z0-9-]{16,}"),
    _plain("wakatime-key", "waka_", r"[0-9a-f-]{36}"),
    _plain("asana-token", "2/", r"\d{10,20}/\d{10,20}:[a-f0-9]{32}"),
    _plain("pagerduty-key", "pdus+", r"[A-Za-z0-9_+-]{16,}"),
    _plain("voyage-key", "pa-", r"[A-Za-z0-9_-]{40,}"),
    _plain("fireworks-key", "fw_", r"[A-Za-z0-9]{20,}"),
    _plain("firecrawl-key", "fc-", r"[a-f0-9]{32}"),
    _plain("elevenlabs-key", "sk_", r"[a-f0-9]{48}"),
    _plain("hubspot-token", "pat-na1- pat-eu1- pat-na2-", r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"),
    _plain("render-key", "rnd_", r"[A-Za-z0-9]{24,}"),
    _plain("honeycomb-key", "hcaik_ hcxik_ hcalk_", r"[A-Za-z0-9]{30,}"),
    _plain("razorpay-key", "rzp_live_ rzp_test_", r"[A-Za-z0-9]{14,}"),
    _plain("mollie-key", "live_ test_", r"[A-Za-z0-9]{30}(?![A-Za-z0-9])"),
    _token("woocommerce-key", "ck_ cs_", "c[ks]_", r"[0-9a-f]{40}"),
    _token("launchdarkly-key", "sdk- mob- api-", "(?:sdk|mob|api)-", r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"),
    _plain("nuget-key", "oy2", r"[a-z0-9]{43}"),
    _plain("crates-token", "cio", r"[A-Za-z0-9]{32}(?![A-Za-z0-9])"),
    _plain("mandrill-key", "md-", r"[A-Za-z0-9_-]{22}(?![A-Za-z0-9_-])"),
    _token("plaid-token", "access-", "access-(?:sandbox|development|production)-", r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"),
    _token("paypal-token", "access_token$", r"access_token\$(?:production|sandbox)\$", r"[a-z0-9]{16}\$[0-9a-f]{32}"),
    _token("clickup-token", "pk_", r"pk_\d{5,10}_", r"[A-Z0-9]{32}"),
    _plain("wandb-key", "wandb_v1_", r"[A-Za-z0-9_]{30,}"),
    _plain("dbt-token", "dbtc_ dbtu_ dbts_", r"[A-Za-z0-9_-]{30,}"),
    _plain("statsig-key", "secret-", r"[A-Za-z0-9]{40,}"),
    _plain("matrix-token", "syt_", r"[A-Za-z0-9]{4,}_[A-Za-z]{16,}_[A-Za-z0-9]{4,}"),
    _plain("telnyx-key", "KEY01", r"[A-F0-9]{20,}_[A-Za-z0-9]{20,}"),
    _plain("xata-key", "xau_", r"[A-Za-z0-9]{30,}"),
    _token("asana-token", "1/1", "1/", r"\d{15,17}:[a-f0-9]{32}"),
    _plain("twitch-token", "oauth:", r"[a-z0-9]{30}"),
    _plain("langfuse-key", "sk-lf- lf_sk_", r"[a-f0-9-]{32,36}"),
    _token("modal-token", "ak- as-", "a[ks]-", r"[A-Za-z0-9]{20,24}(?![A-Za-z0-9_-])", _is_mixed_key),
    _plain("runpod-key", "rpa_ rps_", r"[A-Za-z0-9]{30,}"),
    _plain("e2b-key", "e2b_ sk_e2b_", r"[a-f0-9]{40}"),
    _plain("black-forest-key", "bfl_", r"[A-Za-z0-9]{20,}"),
    _plain("vercel-token", "vercel_blob_rw_ vcp_ vci_ vca_ vck_ vcr_", r"[A-Za-z0-9]{8,}_?[A-Za-z0-9]{16,}"),
    _plain("cloudflare-token", "cfut_ cfat_ cfk_", r"[A-Za-z0-9_-]{36,}"),
    _plain("mongodb-secret", "mdb_sa_sk_", r"[A-Za-z0-9_-]{30,}"),
    _plain("confluent-secret", "cflt", r"[A-Za-z0-9+/]{50,}={0,2}"),
    _token("ory-token", "ory_", "ory_(?:at|rt|ac|st|lo|pat|wak|apikey)_", r"[A-Za-z0-9_-]{20,}(?:\.[A-Za-z0-9_-]{20,})?"),
    _token("google-api-key", "aq.", r"AQ\.", r"[A-Za-z0-9_-]{36,}"),
    _token("cursor-key", f"{_hex('key_')} crsr_", "(?:key|crsr)_", r"[a-f0-9]{64}"),
    _token("infisical-token", _hex("st."), r"st\.", r"[a-f0-9]{24}\.[a-f0-9]{32}\.[a-f0-9]{32}"),
    _token("secret-key", "sk_", "sk_", r"(?:[a-z]{2,10}_){0,2}[A-Za-z0-9]{24,}(?![A-Za-z0-9_-])", _is_mixed_key),
    _plain("neon-key", "napi_", r"[a-z0-9]{40,}"),
    _plain("neon-password", "npg_", r"[A-Za-z0-9]{12,}"),
    _plain("aiven-password", "AVNS_", r"[A-Za-z0-9_-]{15,}"),
    _plain("cerebras-key", "csk-", r"[a-z0-9]{40,}"),
    _token("polar-token", "polar_", "polar_(?:oat|pat|whs|at_u|at_o|rt_u|rt_o|cst)_", r"[A-Za-z0-9_-]{30,}"),
    _token("inngest-key", "signkey-", "signkey-(?:prod|test|branch)-", r"[a-f0-9]{32,}"),
    _plain("together-key", "tgp_v1_", r"[A-Za-z0-9_-]{36,}"),
    _token("trigger-key", "tr_", "tr_(?:dev|prod|stg|preview|pat)_", r"[A-Za-z0-9]{18,}"),
    _plain("unkey-key", "unkey_", r"[A-Za-z0-9]{18,}"),
    _token("stytch-secret", "secret-", "secret-(?:live|test)-", r"[A-Za-z0-9_=-]{30,}"),
    _plain("deno-token", "ddp_ ddo_ dnoj_", r"[A-Za-z0-9]{30,}"),
    _plain("gitea-token", "gta_ gto_ gogs_", r"[a-f0-9]{40}"),
    _plain("apify-token", "apify_api_", r"[A-Za-z0-9]{30,}"),
    _token("snyk-token", "snyk_", r"snyk_(?:uat|sat)\.", r"[a-z0-9]{8}\.[A-Za-z0-9_.-]{20,}"),
    _plain("browserbase-key", "bb_live_ bb_test_", r"[A-Za-z0-9_-]{20,}"),
    _plain("context7-key", "ctx7sk-", r"[a-f0-9-]{30,}"),
    _plain("anyscale-key", "esecret_ aph0_", r"[A-Za-z0-9]{24,}"),
    _plain("zuplo-key", "zpka_", r"[A-Za-z0-9_]{30,}"),
    _plain("plane-key", "plane_api_", r"[a-f0-9]{32}"),
    _plain("dependency-track-key", "odt_", r"[A-Za-z0-9_]{32,}"),
    _plain("calcom-key", "cal_live_ cal_test_", r"[a-f0-9]{32}"),
    _plain("mem0-key", "m0-", r"[A-Za-z0-9]{40}"),
    _token("proxmox-token", "pveapitoken=", r"PVEAPIToken=[\w.@-]{1,64}![\w.-]{1,64}=", r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"),
)  # fmt: skip
