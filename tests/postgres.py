"""A PostgreSQL server for tests, from the distribution's package, with its own folder, port and password."""

import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import quote

import psycopg
import pytest

from tests.server.client import SECONDS
from tests.server.program import free_port, until
from webhook.audit import database
from webhook.audit.postgres import LimitedConnection

USER, PASSWORD = "shipper", "p@ss:w0rd/%41"
REQUIRED = "VGPU_WEBHOOK_POSTGRES"  # "required": tests fail without PostgreSQL
BINARIES = sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"))
_FAST = ["-c", "fsync=off", "-c", "listen_addresses=127.0.0.1", "-c", "shared_buffers=64MB", "-c", "autovacuum=off"]


class Postgres:
    """A server that can be killed and started again."""

    def __init__(self) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="vgpu-webhook-postgres-"))
        self._data = self._folder / "data"
        self._binaries = BINARIES[-1].parent
        self._process: subprocess.Popen[bytes] | None = None
        self.port = free_port()
        password = self._folder / "password"
        password.write_text(PASSWORD)
        if os.getuid() == 0:  # the server refuses to run as root
            for path in (self._folder, password):
                shutil.chown(path, "postgres")
        options = ["-D", self._data, "-U", USER, "--pwfile", password, "-A", "scram-sha-256", "-E", "UTF8"]
        options += ["--locale=C.UTF-8", "--no-sync", "-N"]
        subprocess.run(self._as_user("initdb", *options), check=True, capture_output=True, cwd="/")
        self.start()

    def _as_user(self, program: str, *arguments: object) -> list[str]:
        user = ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"] if os.getuid() == 0 else []
        return [*user, str(self._binaries / program), *map(str, arguments)]

    def start(self) -> None:
        """Start the server, and wait until it accepts connections."""
        options = ["-D", self._data, "-k", self._folder, "-p", self.port]
        with (self._folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                self._as_user("postgres", *options, *_FAST), stderr=log, stdout=log, cwd="/"
            )
        until(self._accepts_connections)

    def _accepts_connections(self) -> bool:
        try:
            self.execute("SELECT 1")
        except psycopg.OperationalError:
            assert self._process is not None
            assert self._process.poll() is None, (self._folder / "log").read_text()
            return False
        return True

    def kill(self) -> None:
        """kill -9 the server and all processes that serve a connection."""
        assert self._process is not None
        children = self._signal(signal.SIGKILL)
        self._process.wait()
        until(lambda: not any(Path(f"/proc/{child}").exists() for child in children))  # they use the shared memory

    @contextmanager
    def frozen(self) -> Iterator[None]:
        """Pause all processes; the kernel still accepts connections and acknowledges data."""
        self._signal(signal.SIGSTOP)
        try:
            yield
        finally:
            self._signal(signal.SIGCONT)

    def _signal(self, number: int) -> list[int]:
        """Send a signal to the server and to all processes that serve a connection; returns the latter."""
        assert self._process is not None
        about = Path(f"/proc/{self._process.pid}")
        self._process.send_signal(signal.SIGSTOP)  # else it may start others, and `children` may lack some: proc(5)
        until(lambda: "(stopped)" in (about / "status").read_text())
        children = [*map(int, (about / "task" / about.name / "children").read_text().split())]
        for process in (self._process.pid, *children):
            with suppress(ProcessLookupError):  # a worker that has ended meanwhile
                os.kill(process, number)
        return children

    def close(self) -> None:
        """Stop the server, and delete its files."""
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(signal.SIGQUIT)
            self._process.wait()
        shutil.rmtree(self._folder)

    def url(self, database: str = "postgres", user: str = USER, password: str = PASSWORD) -> str:
        return f"postgresql://{user}:{quote(password, safe='')}@127.0.0.1:{self.port}/{database}"

    def execute(self, statement: str, database: str = "postgres") -> None:
        with psycopg.connect(self.url(database), autocommit=True) as db:
            db.execute(statement.encode())

    def make(self, database: str) -> str:
        """Create an empty database, and return its URL."""
        self.execute(f"DROP DATABASE IF EXISTS {database} WITH (FORCE)")
        self.execute(f"CREATE DATABASE {database}")
        return self.url(database)


def start_postgres() -> Postgres:
    """Start a server, and let this process wait for it. Without the package the test is skipped, or fails if it is required."""
    for limit in ("CONNECT_SECONDS", "ANSWER_SECONDS", "WRITE_SECONDS", "TURN_SECONDS", "MAX_SECONDS"):
        setattr(database, limit, int(SECONDS))  # the program's own would end what is only slow
    LimitedConnection.answer_seconds = SECONDS
    if not BINARIES:
        if os.environ.get(REQUIRED) == "required":
            pytest.fail(f"PostgreSQL is not installed, but {REQUIRED}=required")
        pytest.skip("needs PostgreSQL: apt-get install postgresql")
    return Postgres()
