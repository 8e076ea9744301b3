"""Starts the program as a copy of a process that has imported it: the import takes longer than most of what tests ask of it.

    Popen([COMMAND, "serve", "--standalone"], stderr=subprocess.PIPE)

is `subprocess.Popen` but for that. A copy has standard streams, environment and directory of its own, and is a child of the
test. What Python or a module reads from the environment when it starts or is imported, it has read before: where that matters,
and where the program as a process is what a test is about, `subprocess` starts the program itself.
"""

import atexit
import ctypes
import gc
import inspect
import json
import os
import runpy
import socket
import subprocess
import sys
import threading
import traceback
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parents[1]
SUBREAPER = 36  # PR_SET_CHILD_SUBREAPER of prctl(2): orphans become children of this process


class Order(NamedTuple):
    """What a copy does: a script, or `python -m MODULE`, with its arguments; and where."""

    command: list[str]
    env: dict[str, str]
    cwd: str
    session: bool


class ForkServer:
    """The process that has imported the program."""

    def __init__(self) -> None:
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, __file__, str(theirs.fileno())], pass_fds=[theirs.fileno()], start_new_session=True
            )

    def start(self, order: Order, streams: list[int]) -> int:
        """Start a copy with these standard streams; returns its number."""
        prctl = ctypes.CDLL(None).prctl
        prctl(SUBREAPER, 1, 0, 0, 0)
        try:
            socket.send_fds(self._socket, [json.dumps(order).encode()], streams)
            # From the copy, and once it is a child of this process.
            pid = sum(int(self._socket.recv(100)) for _ in range(2))
        finally:
            prctl(SUBREAPER, 0, 0, 0, 0)  # orphans of other processes are no business of a test
        return pid


class Popen(subprocess.Popen):  # type: ignore[type-arg]
    """A copy."""

    server: ForkServer | None = None

    def __init__(self, command: Iterable[str | Path], **options: Any) -> None:
        super().__init__([str(part) for part in command], **options)

    def _execute_child(self, *arguments: Any) -> None:
        """Override what starts the process."""
        start = super()._execute_child  # type: ignore[misc]
        if sys.platform != "linux":
            start(*arguments)
            return
        given = inspect.signature(start).bind(*arguments).arguments
        Popen.server = Popen.server or ForkServer()
        env = dict(os.environ if given["env"] is None else given["env"])
        where = (env, str(given["cwd"] or Path.cwd()), bool(given["start_new_session"]))
        ends = [given[name] for name in ("p2cread", "c2pwrite", "errwrite")]
        self.pid = Popen.server.start(
            Order(given["args"], *where), [number if end == -1 else end for number, end in enumerate(ends)]
        )
        self._child_created = True
        pipes = ("p2cread", "p2cwrite", "c2pread", "c2pwrite", "errread", "errwrite")
        self._close_pipe_fds(*(given[name] for name in pipes))  # type: ignore[attr-defined]


def _serve(connection: socket.socket) -> Order:
    """Fork for each request. Returns in the copies only."""
    while True:
        request, streams, _, _ = socket.recv_fds(connection, 1 << 20, 3)
        if not request:
            os._exit(0)
        middle = os.fork()
        if middle == 0:
            break
        for stream in streams:
            os.close(stream)
        os.waitpid(middle, 0)
        connection.send(b"0")
    if os.fork():
        os._exit(0)
    order = Order(*json.loads(request))
    if order.session:
        os.setsid()  # before anybody sends a signal to it
    connection.send(b"%d" % os.getpid())
    connection.close()
    _become(order, streams)
    return order


def _become(order: Order, streams: list[int]) -> None:
    os.chdir(order.cwd)
    os.environ.clear()
    os.environ.update(order.env)
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
    for stream in streams:
        os.close(stream)
    sys.stdin = open(0, encoding="utf-8", errors="surrogateescape", closefd=False)  # noqa: SIM115
    sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", buffering=1, encoding="utf-8", errors="backslashreplace", closefd=False)  # noqa: SIM115


def import_all() -> None:
    """Load all modules of the project."""
    import importlib
    import pkgutil

    for package in ("webhook", "certs"):
        for module in pkgutil.walk_packages([str(ROOT / package)], f"{package}."):
            if not module.name.endswith("__main__"):
                importlib.import_module(module.name)


def _run(order: Order) -> int:
    """Do what a process does; returns its exit code."""
    sys.argv = order.command
    try:
        if order.command[:2] == [sys.executable, "-m"]:
            sys.argv = order.command[2:]
            runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
        else:
            runpy.run_path(sys.argv[0], run_name="__main__")
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:  # noqa: BLE001  # as the interpreter does
        traceback.print_exc()
        return 1
    return 0


if __name__ == "__main__":
    sys.path[0] = str(ROOT)
    import_all()
    import psycopg  # noqa: F401
    import uvloop  # noqa: F401

    gc.freeze()
    code = _run(_serve(socket.socket(fileno=int(sys.argv[1]))))
    threading._shutdown()  # type: ignore[attr-defined]  # waits for other threads
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)  # to tear down all modules would take as long as to import them
