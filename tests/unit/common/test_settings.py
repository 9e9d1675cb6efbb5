import os
import subprocess
import sys
from pathlib import Path

import pytest

from rag_assets.common.elasticsearch_settings import ElasticsearchSettings, IndexLayout
from rag_assets.common.errors import ConfigurationError
from rag_assets.common.settings import Settings
from rag_assets.runtime.program_processes import build_dagster_environment
from rag_assets.storage.catalog.database import Database
from rag_assets.storage.index.elasticsearch.mapping import IndexNames
from rag_assets.storage.index.model import IndexSpec, Owner
from rag_assets.storage.index.pgvector.tables import SchemaNames

LONGEST = "x" * 24


def refusal(home: Path, **environ: str) -> ConfigurationError:
    with pytest.raises(ConfigurationError) as refused:
        Settings.from_environment({"RAG_ASSETS_HOME": str(home), **environ})
    assert refused.value.hint
    return refused.value


@pytest.mark.parametrize(
    "prefix",
    [
        *("Prod", "a,b", "_x", "*", " ", "a b", "é", "a..b", "a.", "-a", "a/b", "a:b", "a#"),
        *("a__b", f"{LONGEST}x"),
    ],
)
def test_a_prefix_that_no_store_takes_is_refused(tmp_path: Path, prefix: str) -> None:
    error = refusal(tmp_path, RAG_ASSETS_INDEX_PREFIX=prefix)
    assert error.message == f"RAG_ASSETS_INDEX_PREFIX is not valid: {prefix!r}"
    assert "at most 24 characters" in (error.hint or "")


@pytest.mark.parametrize("prefix", ["rag", "team-a", "a.b_c-d", "7", LONGEST, ""])
def test_a_prefix_that_all_stores_take_is_accepted(tmp_path: Path, prefix: str) -> None:
    environ = {"RAG_ASSETS_HOME": str(tmp_path), "RAG_ASSETS_INDEX_PREFIX": prefix}
    assert Settings.from_environment(environ).index_prefix == (prefix or "rag")


def test_names_with_the_longest_prefix_and_tenant_fit() -> None:
    tenant = "t" * 63
    names = IndexNames(LONGEST)
    assert len(names.dedicated(IndexSpec(16_000, "int8_hnsw"), tenant)) <= 255
    assert len(names.alias(tenant)) <= 255
    assert len(SchemaNames(LONGEST).schema(Owner(tenant, 9_999_999, 99_999))) <= 63


@pytest.mark.parametrize(
    "url",
    [
        *("127.0.0.1:9200", "localhost", "http://", "ftp://x", "http://x:99999", "http://x:0"),
        *("not a url", "http://a b", "http://me:s3cret@:9200"),
        *("http://a,b", "http://a:9200,b:9200", "http://a:9200/,b", "http://a,"),
    ],
)
def test_an_address_of_elasticsearch_needs_scheme_and_host(tmp_path: Path, url: str) -> None:
    error = refusal(tmp_path, RAG_ASSETS_ELASTICSEARCH_URL=url)
    message = "RAG_ASSETS_ELASTICSEARCH_URL is not the address of an Elasticsearch server"
    assert error.message == message


@pytest.mark.parametrize("name", ["RAG_ASSETS_DATABASE_URL", "RAG_ASSETS_PGVECTOR_URL"])
@pytest.mark.parametrize(
    "url", ["127.0.0.1:5432/x", "mysql://me:s3cret@b/c", "postgres:/x", "host=/tmp password=s3cret"]
)
def test_an_address_of_postgres_needs_its_scheme(tmp_path: Path, name: str, url: str) -> None:
    error = refusal(tmp_path, **{name: url})
    assert error.message == f"{name} is not the address of a Postgres server"
    assert "s3cret" not in error.advice


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://me:s3cret@127.0.0.1:abc/x",
        "postgresql://me:s3cret@127.0.0.1/x?foo=bar",
        "postgresql://me:s3cret/x@127.0.0.1/x",
    ],
)
def test_a_malformed_address_of_postgres_is_refused_without_its_password(url: str) -> None:
    with pytest.raises(ConfigurationError, match="RAG_ASSETS_DATABASE_URL is malformed") as refused:
        Database(url)
    assert "s3cret" not in refused.value.advice


@pytest.mark.parametrize("name", ["RAG_ASSETS_LAKE_URL", "RAG_ASSETS_BLOBS_URL"])
@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("s3//bucket", "is a relative path"),
        ("lake", "is a relative path"),
        ("file://", "is a relative path"),
        ("s3://", "is not the address of an object store"),
        ("s3:///prefix", "is not the address of an object store"),
        ("s3://a bucket/x", "is not the address of an object store"),
        ("~nobody-has-this-name/lake", "refers to the home folder of an unknown user"),
        ("/etc/passwd", "is not a folder"),
    ],
)
def test_a_place_that_is_neither_folder_nor_object_store_is_refused(
    tmp_path: Path, name: str, value: str, said: str
) -> None:
    message = refusal(tmp_path, **{name: value}).message
    assert message.startswith(name)
    assert said in message


def test_places_are_kept_as_they_are_meant(tmp_path: Path) -> None:
    environ = {
        "RAG_ASSETS_HOME": str(tmp_path),
        "RAG_ASSETS_LAKE_URL": "s3://bucket/lake/",
        "RAG_ASSETS_BLOBS_URL": f"file://{tmp_path}/with space",
    }
    settings = Settings.from_environment(environ)
    assert settings.lake_url == "s3://bucket/lake"
    assert settings.blobs_url == f"{tmp_path}/with space"


def test_a_child_process_reads_the_same_addresses(tmp_path: Path) -> None:
    settings = Settings(
        home=tmp_path,
        database_url="postgresql://writer@h/d",
        owner_database_url="postgresql://owner@h/d",
        service_database_url="postgresql://service@h/d",
        dagster_database_url="postgresql://dagster@h/d",
        elasticsearch_url="http://h:9200",
        lake_url="s3://bucket/lake",
        blobs_url=str(tmp_path / "blobs"),
        index_prefix="own",
        vectors_url="postgresql://vectors@h/d",
        elasticsearch=ElasticsearchSettings(
            username="me",
            password_file=tmp_path / "password",
            fingerprint="ab" * 32,
            layout=IndexLayout(3, 0, "5s", "data_warm,data_hot"),
        ),
    )
    assert Settings.from_environment(settings.address_variables()) == settings
    embedded = Settings.from_environment({"RAG_ASSETS_HOME": str(tmp_path)})
    assert Settings.from_environment(embedded.address_variables()) == embedded


@pytest.mark.parametrize("name", ["RAG_ASSETS_ALLOWED_ROOTS", "RAG_ASSETS_MASTER_KEY_FILE"])
def test_a_relative_path_is_refused(tmp_path: Path, name: str) -> None:
    error = refusal(tmp_path, **{name: "some/where"})
    assert error.message.startswith(f"{name} is a relative path")


def test_a_locale_that_spells_names_of_files_otherwise_is_refused(tmp_path: Path) -> None:
    environ = {"PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "LC_ALL": "C"}
    environ |= {"RAG_ASSETS_HOME": str(tmp_path), "PATH": os.environ["PATH"]}
    program = "from rag_assets.common.settings import Settings; Settings.from_environment()"
    ran = subprocess.run(
        [sys.executable, "-c", program], env=environ, capture_output=True, text=True, check=False
    )
    assert ran.returncode != 0
    assert "encodes file names in ascii" in ran.stderr


@pytest.mark.parametrize(
    ("former", "name", "url"),
    [
        ("DATABASE_URL", "RAG_ASSETS_DATABASE_URL", "postgresql://{}/team"),
        ("ELASTICSEARCH_URL", "RAG_ASSETS_ELASTICSEARCH_URL", "http://{}:9200"),
    ],
)
def test_a_former_name_is_read_with_a_warning_and_the_new_one_wins(
    tmp_path: Path, former: str, name: str, url: str
) -> None:
    old = {"RAG_ASSETS_HOME": str(tmp_path), former: url.format("old")}
    with pytest.warns(FutureWarning, match=f"{former} is now called {name}"):
        read = Settings.from_environment(old).address_variables()
    assert read[name] == url.format("old")
    both = Settings.from_environment({**old, name: url.format("new")})
    assert both.address_variables()[name] == url.format("new")
    none = Settings.from_environment({**old, name: ""})
    assert name not in none.address_variables(), "the former name is another program's"


def test_the_home_of_an_installed_package_is_the_current_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (packages := tmp_path / "site-packages").mkdir()
    (folder := tmp_path / "project").mkdir()
    monkeypatch.setattr("rag_assets.common.settings.PROJECT_ROOT", packages)
    monkeypatch.chdir(folder)
    assert Settings.from_environment({}).home == folder
    (packages / "pyproject.toml").write_text('[project]\nname = "team"\n')
    assert Settings.from_environment({}).home == folder, "a team's wheel put it there"
    (packages / "pyproject.toml").write_text('[project]\nname = "rag-assets"\n')
    assert Settings.from_environment({}).home == packages, "of a checkout, its own folder"


@pytest.mark.parametrize("of_a_person", [True, False])
def test_a_persons_home_and_the_root_folder_are_no_installation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, of_a_person: bool
) -> None:
    (packages := tmp_path / "site-packages").mkdir()
    monkeypatch.setattr("rag_assets.common.settings.PROJECT_ROOT", packages)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path if of_a_person else "/")
    with pytest.raises(ConfigurationError, match="cannot be the folder of an install") as caught:
        Settings.from_environment({})
    assert "set RAG_ASSETS_HOME" in (caught.value.hint or "")
    named = Settings.from_environment({"RAG_ASSETS_HOME": str(tmp_path)})
    assert named.home == tmp_path, "a person may choose it"


def test_a_dagster_home_is_a_teams_own_unless_our_processes_set_it(tmp_path: Path) -> None:
    (home := tmp_path / "home").mkdir()
    team = str(tmp_path / "team")
    own = {"RAG_ASSETS_HOME": str(home)}
    assert Settings.from_environment(own).dagster_home is None
    ours = Settings(home).own_dagster_home
    assert ours == home / ".local" / "dagster"
    assert Settings.from_environment({**own, "DAGSTER_HOME": str(ours)}).dagster_home is None
    in_one_folder = Settings.from_environment({**own, "DAGSTER_HOME": str(home)})
    assert in_one_folder.dagster_home == home, "the home may be a team's Dagster project"
    assert Settings.from_environment({**own, "DAGSTER_HOME": team}).dagster_home == Path(team)
    set_by_us = build_dagster_environment(
        Settings(home=Path(team)), "postgresql://localhost/catalog"
    )
    assert Settings.from_environment({**set_by_us, **own}).dagster_home is None
    (home / "pyproject.toml").write_text('name = "rag-assets"\n')
    assert Settings(home).own_dagster_home == home
    set_by_us = build_dagster_environment(Settings(home), "postgresql://localhost/catalog")
    elsewhere = Settings.from_environment({**set_by_us, "RAG_ASSETS_HOME": str(tmp_path)})
    assert elsewhere.dagster_home is None
    relative = Settings.from_environment({**own, "DAGSTER_HOME": "team"})
    assert relative.dagster_home == Path("team"), "refused where the instance is opened"
