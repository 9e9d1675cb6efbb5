"""Access to the panel: who gets in, for how long, and what other sites can do meanwhile."""

from __future__ import annotations

import re
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest
from sqlalchemy import select, text

from rag_assets.common.errors import ConfigurationError
from rag_assets.panel.settings import PanelSettings
from rag_assets.storage.catalog.accounts.tables import panel_codes, panel_sessions
from tests.installation import Installation
from tests.panel_site import PanelSite, panel_site
from tests.security.service_process import is_ready, started

OTHER = "https://other-site.example"


@pytest.fixture(scope="module")
def site(
    shared_installation: Installation, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[PanelSite]:
    log = tmp_path_factory.mktemp("panel") / "log"
    with (
        pytest.MonkeyPatch.context() as environment,
        panel_site(shared_installation, log, "--workers", "2") as site,
    ):
        environment.setenv("RAG_ASSETS_PRIVATE_ENDPOINTS", "127.0.0.1")
        site.project("checkout", key=True)
        site.project("billing", key=True)
        yield site


@dataclass
class Browser:
    """A browser's requests: its cookies, its host name, and its Origin.

    The HTTP client need not resolve names below `.localhost`: it sends them as Host.
    """

    site: PanelSite
    client: httpx.Client

    @property
    def origin(self) -> str:
        return f"http://{self.client.headers.get('Host', urlsplit(self.site.origin).netloc)}"

    def get(self, path: str, **headers: str) -> httpx.Response:
        return self.client.get(path, headers=headers)

    def post(self, path: str, form: Any = None, **headers: str) -> httpx.Response:
        sent = {"Origin": self.origin, **headers}
        return self.client.post(path, data=form or {}, headers=sent)

    def enter(self, link: str) -> httpx.Response:
        """Submit the form of a link's page, at the link's own origin."""
        self.client.headers["Host"] = urlsplit(link).netloc
        return self.post("/panel/enter", {"code": code_of(link)})

    def signed_in(self, project: str = "checkout", **claims: Any) -> Browser:
        answer = self.enter(self.site.link(project, **claims))
        assert answer.status_code == 303, answer.text
        return self

    @property
    def token(self) -> str:
        found = re.search(r'data-token="([0-9a-f]{64})"', self.get("/panel/guidelines").text)
        assert found is not None
        return found[1]

    @property
    def is_in(self) -> bool:
        return self.get("/panel/guidelines").status_code == 200


def code_of(link: str) -> str:
    return parse_qs(urlsplit(link).query)["code"][0]


@pytest.fixture
def browser(site: PanelSite) -> Iterator[Browser]:
    # A refused body is not read, so the connection ends.
    alone = httpx.Limits(max_keepalive_connections=0)
    with httpx.Client(base_url=site.origin, timeout=60, limits=alone) as client:
        yield Browser(site, client)


def at_service(browser: Browser, link: str) -> str:
    """Return the path of a link, and use the link's host name from now on."""
    parts = urlsplit(link)
    browser.client.headers["Host"] = parts.netloc
    return f"{parts.path}?{parts.query}"


def changed(site: PanelSite, statement: str) -> None:
    with site.driver.session.catalog.database.begin() as connection:
        assert connection.execute(text(statement)).rowcount


def texts_sent(browser: Browser, **changes: str) -> httpx.Response:
    form = {"token": browser.token, "text": "Use test ids.", "version": ""}
    return browser.post("/panel/guidelines/text", form, **changes)


def test_a_link_signs_in_once_and_only_by_its_form(site: PanelSite, browser: Browser) -> None:
    link = site.link("checkout")
    for _ in range(2):
        fetched = browser.get(at_service(browser, link))
        assert (fetched.status_code, "set-cookie" in fetched.headers) == (200, False)
        assert "checkout" in fetched.text
    entered = browser.enter(link)
    assert (entered.status_code, entered.headers["location"]) == (303, "/panel")
    cookie = entered.headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=lax" in cookie
    assert browser.is_in
    assert browser.post("/panel/enter", {"code": code_of(link)}).status_code == 410


def test_a_link_is_for_a_minute(site: PanelSite, browser: Browser) -> None:
    link = site.link("checkout")
    changed(site, "UPDATE rag_catalog.panel_codes SET expires_at = now()")
    assert browser.enter(link).status_code == 410
    assert not browser.is_in


def test_links_are_for_admins_of_the_project(site: PanelSite) -> None:
    def status(project: str = "checkout", **claims: Any) -> int:
        return site.ask("POST", "/panel/links", {"project": project}, **claims).status_code

    assert status(role="member") == 403
    assert status("nothing") == 404
    assert status(organization="quay") == 404
    assert status() == 201
    assert site.client.post("/panel/links", json={"project": "checkout"}).status_code == 401


def test_nothing_of_a_secret_is_stored_as_it_is(site: PanelSite, browser: Browser) -> None:
    code = code_of(site.link("checkout"))
    browser.signed_in()
    [secret] = browser.client.cookies.values()
    with site.driver.session.catalog.database.begin() as connection:
        rows = [
            str([bytes(v) if isinstance(v, memoryview) else v for v in row])
            for table in (panel_codes, panel_sessions)
            for row in connection.execute(select(table))
        ]
    assert rows
    assert not any(word in row for row in rows for word in (secret, code))


@pytest.mark.parametrize(
    "end",
    [
        "UPDATE rag_catalog.panel_sessions SET used_at = now() - interval '31 minutes'",
        "UPDATE rag_catalog.panel_sessions SET expires_at = now()",
    ],
)
def test_a_session_ends_by_itself(site: PanelSite, browser: Browser, end: str) -> None:
    browser.signed_in()
    token = browser.token
    changed(site, end)
    gone = browser.get("/panel/guidelines")
    assert (gone.status_code, gone.headers["location"]) == (303, "/panel/sign-in")
    late = browser.post("/panel/guidelines/text", {"token": token, "text": "<b>kept"})
    assert (late.status_code, late.headers["x-panel-session"]) == (403, "ended")
    assert "&lt;b&gt;kept</textarea>" in late.text
    assert "<b>kept" not in late.text
    key = "a-key-that-no-page-shows"
    late = browser.post("/panel/guidelines/models/keys", {"provider": "openai", "key": key})
    assert late.status_code == 403
    assert key not in late.text


def test_a_session_begins_again_for_its_page_alone(site: PanelSite, browser: Browser) -> None:
    browser.signed_in()
    tenant = browser.get("/panel/session").json()["tenant"]
    changed(site, "UPDATE rag_catalog.panel_sessions SET expires_at = now()")
    assert browser.get("/panel/session").status_code == 303
    form = {"key": site.token(), "project": "checkout", "tenant": tenant}
    for wrong in ({"key": "nothing"}, {"tenant": "another"}):
        refused = browser.post("/panel/sign-in/again", form | wrong)
        assert (refused.status_code, "set-cookie" in refused.headers) == (422, False)
    foreign = browser.post("/panel/sign-in/again", form, Origin="https://other-site.example")
    assert (foreign.status_code, "set-cookie" in foreign.headers) == (403, False)
    # At a host name shared with other programs of this machine, no cookie is set.
    own = browser.client.headers["Host"]
    port = own.rpartition(":")[2]
    browser.client.headers["Host"] = f"127.0.0.1:{port}"
    shared = browser.post("/panel/sign-in/again", form)
    assert (shared.status_code, "set-cookie" in shared.headers) == (403, False)
    browser.client.headers["Host"] = own
    again = browser.post("/panel/sign-in/again", form)
    assert again.status_code == 200, again.text
    assert "httponly" in again.headers["set-cookie"].lower()
    assert again.json() == {"tenant": tenant, "token": browser.token}


def test_each_page_names_deletions_that_are_held_back(site: PanelSite, browser: Browser) -> None:
    browser.signed_in()
    assert "disappeared" not in browser.get("/panel/guidelines").text
    with site.driver.session.catalog.database.begin() as connection:
        tenant = browser.get("/panel/session").json()["tenant"]
        values = {"tenant": tenant, "reason": "a folder /private/place"}
        statement = (
            "INSERT INTO rag_catalog.syncs (tenant, source, held_deletions, held_reason)"
            " VALUES (:tenant, 'gone', 30, :reason)"
        )
        connection.execute(text(statement), values)
    try:
        for path in ("/panel/guidelines", "/panel/guidelines/models"):
            page = browser.get(path).text
            assert "30 documents of source gone disappeared." in page
            assert "/private/place" not in page
    finally:
        changed(site, "DELETE FROM rag_catalog.syncs WHERE source = 'gone'")


def test_polls_of_a_page_do_not_keep_a_session_alive(site: PanelSite, browser: Browser) -> None:
    browser.signed_in()
    changed(site, "UPDATE rag_catalog.panel_sessions SET used_at = now() - interval '29 minutes'")
    assert browser.get("/panel/guidelines/watch?ids=").status_code == 200
    with site.driver.session.catalog.database.begin() as connection:
        used = connection.scalar(
            text(
                "SELECT max(used_at) < now() - interval '20 minutes'"
                " FROM rag_catalog.panel_sessions"
            )
        )
    assert used
    assert browser.is_in


def test_a_session_lasts_no_longer_than_its_token(site: PanelSite, browser: Browser) -> None:
    browser.signed_in(subject="brief")
    with site.driver.session.catalog.database.begin() as connection:
        seconds = connection.scalar(
            text(
                "SELECT extract(epoch FROM expires_at - now()) FROM rag_catalog.panel_sessions"
                " WHERE name = 'jwt:brief'"
            )
        )
    assert 0 < float(seconds) <= 600


def test_a_revoked_token_takes_its_sessions_with_it(site: PanelSite, browser: Browser) -> None:
    tenant = "harbour.checkout"
    made = site.installation.command("tokens", "create", tenant, "--role", "admin", "--json").json
    entered = browser.post("/panel/sign-in", {"key": made["token"], "project": ""})
    assert entered.status_code == 303
    assert browser.enter(entered.headers["location"]).status_code == 303
    assert browser.is_in
    site.installation.command("tokens", "revoke", tenant, made["token_id"])
    assert not browser.is_in


def test_a_wrong_token_is_told_and_not_repeated(browser: Browser) -> None:
    wrong = browser.post("/panel/sign-in", {"key": "rag_wrong0123456789", "project": "checkout"})
    assert wrong.status_code == 422
    assert "rag_wrong" not in wrong.text


def test_signing_out_ends_the_session_for_all_workers(browser: Browser) -> None:
    browser.signed_in()
    [(name, secret)] = browser.client.cookies.items()
    assert browser.post("/panel/sign-out", {"token": "0" * 64}).status_code == 403
    out = browser.post("/panel/sign-out", {"token": browser.token})
    assert out.status_code == 303
    # Each connection may reach another worker.
    host = {"Host": browser.client.headers["Host"]}
    for _ in range(8):
        with httpx.Client(
            base_url=browser.site.origin, cookies={name: secret}, headers=host
        ) as again:
            assert again.get("/panel/guidelines").status_code == 303


def test_a_session_is_known_to_every_worker(browser: Browser) -> None:
    browser.signed_in()
    host = {"Host": browser.client.headers["Host"]}
    for _ in range(8):
        with httpx.Client(
            base_url=browser.site.origin, cookies=browser.client.cookies, headers=host
        ) as again:
            assert again.get("/panel/guidelines").status_code == 200


def test_forged_and_cross_site_requests_are_refused(browser: Browser) -> None:
    browser.signed_in()
    assert texts_sent(browser, Origin=OTHER).status_code == 403
    assert texts_sent(browser, Origin="null").status_code == 403
    assert texts_sent(browser, **{"Sec-Fetch-Site": "cross-site"}).status_code == 403
    assert texts_sent(browser, **{"Sec-Fetch-Site": "same-site"}).status_code == 403
    form = {"text": "x", "version": ""}
    assert browser.post("/panel/guidelines/text", form).status_code == 403
    assert browser.post("/panel/guidelines/text", {**form, "token": "0" * 64}).status_code == 403
    headers = {"X-Panel-Token": "0" * 64}
    form["token"] = browser.token
    assert browser.post("/panel/guidelines/text", form, **headers).status_code == 403
    without = browser.client.post("/panel/guidelines/text", data=form)
    assert without.status_code == 403, "no Origin at all"
    assert texts_sent(browser).status_code == 303, "and what is ours is taken"


def test_a_page_of_another_session_changes_nothing(site: PanelSite, browser: Browser) -> None:
    token = browser.signed_in("checkout").token
    browser.signed_in("billing")
    form = {"token": token, "text": "meant for checkout", "version": ""}
    assert browser.post("/panel/guidelines/text", form).status_code == 403


def test_a_file_without_the_token_is_not_read(browser: Browser) -> None:
    browser.signed_in()

    def sent(**fields: str) -> int:
        return browser.client.post(
            "/panel/guidelines/upload",
            data=fields,
            files={"file": ("seals.md", b"# Seals\n\nSeventeen.\n")},
            headers={"Origin": browser.origin},
        ).status_code

    assert sent() == 403
    assert sent(token="0" * 64) == 403
    assert sent(token=browser.token) == 303


def test_a_name_that_comes_to_mean_this_machine_gets_no_page(browser: Browser) -> None:
    browser.signed_in()
    assert browser.get("/panel/guidelines", Host="rebound.example").status_code == 403
    assert browser.get("/panel/sign-in", Host="rebound.example").status_code == 403


def test_every_answer_of_the_panel_keeps_scripts_of_others_out(browser: Browser) -> None:
    browser.signed_in()
    for path in ("/panel/sign-in", "/panel/guidelines", "/panel/guidelines/documents/x", "/panel"):
        answer = browser.get(path)
        policy = answer.headers["content-security-policy"]
        leads_on = " http://*.localhost:*" if path == "/panel/sign-in" else ""
        assert policy == (
            "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self';"
            f" connect-src 'self'; form-action 'self'{leads_on}; base-uri 'none';"
            " frame-ancestors 'none'"
        )
        assert " style=" not in answer.text
        assert not re.search(r"<script(?![^>]* src=)", answer.text)
        assert not re.search(r"\son[a-z]+=", answer.text)


def test_a_cookie_of_one_host_name_is_worth_nothing_at_another(
    site: PanelSite, browser: Browser
) -> None:
    browser.signed_in()
    own = browser.client.headers["Host"]
    assert re.fullmatch(r"panel-[0-9a-f]{32}\.localhost:\d+", own)
    port = urlsplit(site.origin).port
    for host in (f"127.0.0.1:{port}", f"localhost:{port}", f"panel-{'0' * 32}.localhost:{port}"):
        assert browser.get("/panel/guidelines", Host=host).status_code == 303, host
    for host in (f"x.localhost:{port}", own.partition(":")[0], f"{own.partition(':')[0]}:1"):
        assert browser.get("/panel/guidelines", Host=host).status_code == 403, host
    assert browser.is_in
    # A link's code is not accepted either, under a name that an attacker has chosen.
    link = site.link("checkout")
    assert urlsplit(link).netloc not in {own, urlsplit(site.link("checkout")).netloc}
    assert browser.post("/panel/enter", {"code": code_of(link)}).status_code == 410
    assert browser.enter(link).status_code == 303


def test_the_name_of_a_session_is_shown_to_nobody_who_is_not_signed_in(
    site: PanelSite, browser: Browser
) -> None:
    name = browser.signed_in().client.headers["Host"].partition(".")[0]
    with httpx.Client(base_url=site.origin) as stranger:
        for path in ("/panel", "/panel/sign-in", "/panel/guidelines", "/panel/enter?code=x"):
            answer = stranger.get(path)
            assert name not in answer.text
            assert "panel-" not in answer.headers.get("location", "")
    wrong = browser.post("/panel/sign-in", {"key": "rag_wrong0123456789"}, Host=stranger_host(site))
    assert wrong.status_code == 403, "the form was another name's"


def stranger_host(site: PanelSite) -> str:
    return urlsplit(site.origin).netloc


def test_a_token_leads_to_a_name_of_its_own_each_time(site: PanelSite, browser: Browser) -> None:
    form = {"key": site.token(), "project": "checkout"}
    first, second = (browser.post("/panel/sign-in", form).headers["location"] for _ in range(2))
    assert urlsplit(first).hostname != urlsplit(second).hostname
    assert "set-cookie" not in browser.post("/panel/sign-in", form).headers
    assert browser.enter(second).status_code == 303
    assert browser.is_in


def test_loopbacks_other_address_is_the_services_as_well(
    shared_installation: Installation, site: PanelSite, tmp_path: Path
) -> None:
    port = int(urlsplit(site.origin).port or 0)
    with httpx.Client(base_url=f"http://[::1]:{port}") as other:
        assert other.get("/health/ready").status_code == 200
    with socket.create_server(("::1", 0), family=socket.AF_INET6) as taken:
        taken_port = str(taken.getsockname()[1])
        log = tmp_path / "log"
        with log.open("w") as stream:
            process = shared_installation.start("serve", "--port", taken_port, stderr=stream)
            try:
                until = time.monotonic() + 60
                while not is_ready(int(taken_port)):
                    assert time.monotonic() < until, log.read_text()
                    time.sleep(0.1)
                with httpx.Client(base_url=f"http://127.0.0.1:{taken_port}") as client:
                    assert client.get("/panel/sign-in").status_code == 404
            finally:
                process.kill()
                process.communicate()
    assert f"another program listens at ::1, port {taken_port}" in log.read_text()


def test_keys_change_only_shortly_after_signing_in(site: PanelSite, browser: Browser) -> None:
    browser.signed_in()
    form = {"token": browser.token, "provider": "gemini", "key": "an-example-key-0123456789"}
    changed(site, "UPDATE rag_catalog.panel_sessions SET created_at = now() - interval '11 min'")
    for path in ("/panel/guidelines/models/keys", "/panel/guidelines/models/keys/delete"):
        late = browser.post(path, {**form, "confirmed": "yes"})
        assert late.status_code == 403
        assert "sign in again" in late.text
        assert 'name="key"' in late.text
    models = browser.get("/panel/guidelines/models").text
    assert "Sign in again" in models
    assert "Store the key" not in models
    asked = site.ask("GET", "/api/projects/checkout/keys").text
    assert "gemini" not in asked
    assert "openai" in asked
    assert texts_sent(browser).status_code in {303, 412}, "all else can be changed"
    browser.signed_in()
    form["token"] = browser.token
    assert browser.post("/panel/guidelines/models/keys", form).status_code == 303


def test_other_sessions_of_a_person_end_and_nobody_elses(site: PanelSite) -> None:
    with ExitStack() as opened:
        mine, again, billing, someone = (
            Browser(site, opened.enter_context(httpx.Client(base_url=site.origin, timeout=60)))
            for _ in range(4)
        )
        mine.signed_in(subject="kim")
        again.signed_in(subject="kim")
        billing.signed_in("billing", subject="kim")
        someone.signed_in(subject="lee")
        unused = site.link("checkout", subject="kim")
        page = mine.get("/panel/guidelines/sessions").text
        assert page.count("signed in 2") == 2
        assert mine.post("/panel/guidelines/sessions").status_code == 403
        ended = mine.post("/panel/guidelines/sessions", {"token": mine.token})
        assert "2 sessions ended." in ended.text
        assert [one.is_in for one in (mine, again, billing, someone)] == [True, False, False, True]
        assert again.enter(unused).status_code == 410


def test_the_command_prints_a_link_for_an_operator(site: PanelSite, browser: Browser) -> None:
    port = str(urlsplit(site.origin).port)
    made = site.installation.command("panel", "harbour.checkout", "--port", port, "--json").json
    assert urlsplit(made["url"]).port == int(port)
    assert browser.enter(made["url"]).status_code == 303
    assert "operator" in browser.get("/panel/guidelines").text
    site.installation.add_tenant("files-only")
    refused = site.installation.command("panel", "files-only")
    assert refused.code == 1
    assert "no panel" in refused.err


def test_attempts_to_guess_a_session_are_limited(
    shared_installation: Installation, site: PanelSite, tmp_path: Path
) -> None:
    limit = {"RAG_ASSETS_SERVICE_ATTEMPTS": "5/hour"}
    with started(shared_installation, tmp_path / "log", **limit) as (_, port):
        origin = f"http://127.0.0.1:{port}"
        statuses = []
        for number in range(8):
            cookies = {"rag-assets-panel": f"guess {number}"}
            with httpx.Client(base_url=origin, cookies=cookies) as guessing:
                statuses.append(guessing.get("/panel/guidelines").status_code)
    assert statuses == [303] * 5 + [429] * 3


def test_others_reach_a_panel_by_https_alone() -> None:
    def settings(url: str) -> PanelSettings:
        return PanelSettings.from_environment({"RAG_ASSETS_PANEL_URL": url})

    secure = settings("https://Rag.example:443/panel")
    assert secure.origin == "https://rag.example"
    assert secure.cookie_name.startswith("__Host-")
    assert secure.cookie_path == "/"
    assert secure.serves("0.0.0.0")
    assert not PanelSettings().serves("0.0.0.0")
    assert PanelSettings().serves("127.0.0.1")
    assert not PanelSettings().serves("127.0.0.2"), "names below .localhost do not lead there"
    tunnel = settings("http://localhost:9000")
    assert not tunnel.is_secure
    assert urlsplit(tunnel.create_session_origin(8000)).port == 9000
    for wrong in (
        "http://rag.example",
        "rag.example",
        "https://rag.example/x",
        "ftp://rag.example",
    ):
        with pytest.raises(ConfigurationError):
            settings(wrong)
