import base64
import json
import re
from pathlib import Path

import pytest

from rag_assets.common.errors import ConfigurationError
from rag_assets.common.settings import PROJECT_ROOT, Settings
from rag_assets.resources import stores
from rag_assets.resources.installation import InstallationResource
from rag_assets.runtime.elasticsearch_access import (
    build_connection,
    find_external_connection,
    seal_secret,
)
from rag_assets.runtime.stack import LocalStack
from rag_assets.storage.index.connection import ElasticsearchConnection
from rag_assets.storage.index.elasticsearch.server import build_role

URL = "https://es1.example.com:9200"
MASTER_KEY = base64.b64encode(bytes(range(32))).decode()


def connection(home: Path, **environ: str) -> ElasticsearchConnection | None:
    environment = {"RAG_ASSETS_HOME": str(home), "RAG_ASSETS_MASTER_KEY": MASTER_KEY, **environ}
    return find_external_connection(Settings.from_environment(environment), environment)


def of(**environ: str) -> dict[str, str]:
    return {f"RAG_ASSETS_ELASTICSEARCH_{name}": value for name, value in environ.items()}


def test_without_an_address_the_embedded_server_is_used(tmp_path: Path) -> None:
    assert connection(tmp_path) is None


def test_nodes_share_the_account_of_the_address(tmp_path: Path) -> None:
    url = "https://me:p%40ss@a:9200, https://b"
    found = connection(tmp_path, RAG_ASSETS_ELASTICSEARCH_URL=url)
    assert found is not None
    assert found.nodes == ("https://a:9200", "https://b")
    assert found.account == ("me", "p@ss")
    options = found.client_options()
    assert options["hosts"] == ["https://a:9200", "https://b:443"]
    assert options["basic_auth"] == ("me", "p@ss")
    assert found.shown == "https://a:9200, https://b"
    assert "p@ss" not in repr(found)


def test_a_password_may_have_a_comma(tmp_path: Path) -> None:
    url = "https://me:p,4,s@a:9200,https://me:p,4,s@b:9200"
    found = connection(tmp_path, RAG_ASSETS_ELASTICSEARCH_URL=url)
    assert found is not None
    assert found.nodes == ("https://a:9200", "https://b:9200")
    assert found.account == ("me", "p,4,s")


@pytest.mark.parametrize(
    "decoded",
    ["eu.example.com:9243$abc$def", "eu.example.com$abc:9243$def", "eu.example.com:1$abc:9243"],
)
def test_a_cloud_id_names_the_address(tmp_path: Path, decoded: str) -> None:
    encoded = base64.b64encode(decoded.encode()).decode()
    found = connection(tmp_path, **of(CLOUD_ID=f"name:{encoded}", API_KEY="secret-key"))
    assert found is not None
    assert found.nodes == ("https://abc.eu.example.com:9243",)
    assert found.client_options()["api_key"] == "secret-key"
    assert "secret-key" not in repr(found)


def test_a_password_comes_from_its_file(tmp_path: Path) -> None:
    file = tmp_path / "password"
    file.write_text("hunter2\n")
    environ = of(USERNAME="me", PASSWORD_FILE=str(file))
    found = connection(tmp_path, RAG_ASSETS_ELASTICSEARCH_URL=URL, **environ)
    assert found is not None
    assert found.account == ("me", "hunter2")


def test_a_sealed_secret_opens_with_its_master_key_alone(tmp_path: Path) -> None:
    environ = {"RAG_ASSETS_HOME": str(tmp_path), "RAG_ASSETS_MASTER_KEY": MASTER_KEY}
    sealed = seal_secret(Settings.from_environment(environ), "secret-key", environ)
    assert "secret-key" not in sealed
    given = {"RAG_ASSETS_ELASTICSEARCH_URL": URL, **of(API_KEY=sealed)}
    found = connection(tmp_path, **given)
    assert found is not None
    assert found.api_key == "secret-key"
    other = base64.b64encode(bytes(32)).decode()
    with pytest.raises(ConfigurationError, match="API_KEY cannot be unsealed"):
        connection(tmp_path, **(given | {"RAG_ASSETS_MASTER_KEY": other}))


def test_a_child_process_gets_the_sealed_secret(tmp_path: Path) -> None:
    environ = {"RAG_ASSETS_HOME": str(tmp_path), "RAG_ASSETS_ELASTICSEARCH_URL": URL}
    environ |= of(API_KEY="sealed:AAAA", CA_FILE="/etc/ca.pem", SHARDS="4", REPLICAS="0")
    settings = Settings.from_environment(environ)
    variables = settings.address_variables()
    assert variables["RAG_ASSETS_ELASTICSEARCH_API_KEY"] == "sealed:AAAA"
    assert Settings.from_environment(variables) == settings
    assert "AAAA" not in repr(settings.elasticsearch)


@pytest.mark.parametrize("name", ["API_KEY", "API_KEY_FILE", "CA_FILE", "FINGERPRINT"])
def test_an_account_or_certificate_without_an_address_is_refused(tmp_path: Path, name: str) -> None:
    environ = of(**{name: "ab" * 32 if name == "FINGERPRINT" else "/a/key"})
    environment = {"RAG_ASSETS_HOME": str(tmp_path), **environ}
    message = f"no address of Elasticsearch is set for .*{name}"
    with pytest.raises(ConfigurationError, match=message):
        find_external_connection(Settings.from_environment(environment), environment)
    stack = LocalStack(Settings.from_environment(environment))
    with pytest.raises(ConfigurationError, match=message):
        stack.start_servers(for_dagster=False)
    assert not (tmp_path / ".local").exists(), "no embedded server was started"


@pytest.mark.parametrize(
    ("environ", "named"),
    [(of(API_KEY="k"), "API_KEY"), (of(USERNAME="other", PASSWORD="p"), "USERNAME and .*PASSWORD")],
)
def test_an_account_in_the_address_and_in_settings_is_refused(
    tmp_path: Path, environ: dict[str, str], named: str
) -> None:
    with pytest.raises(ConfigurationError, match=f"set twice: in the address, and by .*{named}"):
        connection(tmp_path, RAG_ASSETS_ELASTICSEARCH_URL="https://me:x@a", **environ)


def test_another_address_keeps_the_account_and_the_certificate(tmp_path: Path) -> None:
    environ = of(API_KEY="secret-key", FINGERPRINT="ab" * 32)
    settings = Settings.from_environment({"RAG_ASSETS_HOME": str(tmp_path), **environ})
    found = build_connection(settings, "https://a", environ)
    pin = "ab" * 32
    assert found == ElasticsearchConnection(("https://a",), api_key="secret-key", fingerprint=pin)


def test_a_resource_keeps_the_account(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[object] = []
    monkeypatch.setattr(stores, "_create_store", lambda *arguments: opened.append(arguments[1]))
    environ = of(API_KEY="secret-key") | {"RAG_ASSETS_HOME": str(tmp_path)}
    environ["RAG_ASSETS_DATABASE_URL"] = "postgresql://db/x"
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("RAG_ASSETS_ELASTICSEARCH_URL", raising=False)
    named = InstallationResource(elasticsearch_url="https://a")
    stores.ElasticsearchResource(installation=named).store()
    assert opened == [ElasticsearchConnection(("https://a",), api_key="secret-key")]


def test_a_file_without_certificates_is_refused(tmp_path: Path) -> None:
    (file := tmp_path / "ca.pem").write_text("no certificate\n")
    with pytest.raises(ConfigurationError, match="CA_FILE contains no certificate in PEM"):
        connection(tmp_path, RAG_ASSETS_ELASTICSEARCH_URL=URL, **of(CA_FILE=str(file)))


@pytest.mark.parametrize(
    ("environ", "message"),
    [
        (of(API_KEY="k", PASSWORD="p"), "API_KEY and .*PASSWORD cannot be combined"),
        (of(USERNAME="me"), "only one of .*USERNAME and .*PASSWORD is set"),
        (of(CA_FILE="/a", FINGERPRINT="ab" * 32), "CA_FILE and .*FINGERPRINT cannot be combined"),
        (of(FINGERPRINT="s3cret"), "FINGERPRINT is not valid$"),
        (of(SHARDS="0"), "SHARDS is not valid"),
        (of(REPLICAS="-1"), "REPLICAS is not valid"),
        (of(REFRESH_INTERVAL="soon"), "REFRESH_INTERVAL is not valid"),
        (of(TIER="hot"), "TIER is not valid"),
        (of(CA_FILE="ca.pem"), "CA_FILE is a relative path"),
        (of(CLOUD_ID="s3cret"), "CLOUD_ID is not valid$"),
        (of(CLOUD_ID="name:AAAA"), "CLOUD_ID cannot be combined"),
        (of(API_KEY_FILE="/nowhere/key"), "API_KEY_FILE cannot be read"),
        (of(CA_FILE="/nowhere/ca.pem"), "CA_FILE cannot be read"),
    ],
)
def test_unusable_settings_fail(tmp_path: Path, environ: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message) as refused:
        connection(tmp_path, RAG_ASSETS_ELASTICSEARCH_URL=URL, **environ)
    assert refused.value.hint
    assert "s3cret" not in str(refused.value)


def test_different_accounts_for_nodes_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="a different account for each node"):
        connection(tmp_path, RAG_ASSETS_ELASTICSEARCH_URL="https://a:x@h1,https://b:y@h2")


def test_a_certificate_without_tls_is_refused(tmp_path: Path) -> None:
    environ = of(FINGERPRINT="ab" * 32)
    with pytest.raises(ConfigurationError, match=r"does not begin with https://"):
        connection(tmp_path, RAG_ASSETS_ELASTICSEARCH_URL="http://a:9200", **environ)


def test_the_documentation_shows_the_roles() -> None:
    text = (PROJECT_ROOT / "docs" / "elasticsearch.md").read_text()
    shown = [json.loads(block) for block in re.findall(r"```json\n(.*?)```", text, re.DOTALL)]
    assert shown == [build_role("indexing", "rag"), build_role("searching", "rag")]
