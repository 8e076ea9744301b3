"""Starts the program as a copy of a process that has imported it. The import takes longer than most of what tests ask of it.

`subprocess.Popen` is replaced while tests run: a command that runs the program of this checkout becomes such a copy, with its
own standard streams, environment and directory, and is a child of the test as before. Every other command starts as always,
and so does one with another Python: options, other PYTHON… variables, or a directory with another checkout.
"""

import atexit
import ctypes
import gc
import inspect
import json
import os
import socket
import subprocess
import sys
import threading
import traceback
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parents[1]
COMMAND = str(Path(sys.executable).with_name("vgpu-webhook"))
SUBREAPER = 36  # PR_SET_CHILD_SUBREAPER of prctl(2): orphans become children of this process
INTERPRETER = ("PYTHON", "LC_", "LANG")  # variables that Python reads when it starts


class Order(NamedTuple):
    """What a copy does: the program, which help and usage call `name`, or if that is empty tests.tuned; and where."""

    name: str
    arguments: list[str]
    env: dict[str, str]
    cwd: str
    session: bool


def _order(args: Any, given: Mapping[str, Any]) -> Order | None:
    """What a command means; None if it does not run the program, or with another Python."""
    env = dict(os.environ if given["env"] is None else given["env"])
    cwd = os.fspath(given["cwd"] or Path.cwd())
    other = any(given[name] for name in ("executable", "preexec_fn", "pass_fds", "shell"))
    if other or _read_by_python(env) != _START or (cwd != str(ROOT) and Path(cwd, "webhook").exists()):
        return None
    where = (env, cwd, bool(given["start_new_session"]))
    match [os.fspath(each) for each in args] if isinstance(args, list | tuple) else []:
        case [program, *arguments] if program == COMMAND:
            return Order("vgpu-webhook", arguments, *where)
        case [sys.executable, "-m", "webhook" | "webhook.cli.main" as module, *arguments]:
            return Order(f"python -m {module}", arguments, *where)
        case [sys.executable, "-m", "certs", *arguments]:
            return Order("python -m", ["certs", *arguments], *where)
        case [sys.executable, "-m", "tests.tuned", *arguments]:
            return Order("", arguments, *where)
    return None


def _read_by_python(variables: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in variables.items() if name.startswith(INTERPRETER)}


_START = _read_by_python(os.environ)
_Popen = subprocess.Popen


class ForkServer:
    """The process that has imported the program."""

    def __init__(self) -> None:
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._process = _Popen(
                [sys.executable, __file__, str(theirs.fileno())], pass_fds=[theirs.fileno()], start_new_session=True
            )

    def start(self, order: Order, streams: list[int]) -> int:
        """Start a copy with these standard streams; returns its number."""
        prctl = ctypes.CDLL(None).prctl
        prctl(SUBREAPER, 1, 0, 0, 0)
        try:
            socket.send_fds(self._socket, [json.dumps(order).encode()], streams)
            pid = int(self._socket.recv(100))
            self._socket.recv(100)  # by now it is a child of this process
        finally:
            prctl(SUBREAPER, 0, 0, 0, 0)  # orphans of other processes are no business of a test
        return pid


class Popen(_Popen):  # type: ignore[type-arg]
    """A process; a copy if it runs the program."""

    server: ForkServer | None = None

    def _execute_child(self, *arguments: Any) -> None:
        """Override what starts the process."""
        given = inspect.signature(_Popen._execute_child).bind(self, *arguments).arguments  # type: ignore[attr-defined]
        order = _order(given["args"], given)
        if order is None:
            super()._execute_child(*arguments)  # type: ignore[misc]
            return
        Popen.server = Popen.server or ForkServer()
        ends = [given[name] for name in ("p2cread", "c2pwrite", "errwrite")]
        self.pid = Popen.server.start(order, [number if end == -1 else end for number, end in enumerate(ends)])
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
        connection.send(b"done")
    child = os.fork()
    if child:
        connection.send(b"%d" % child)
        os._exit(0)
    connection.close()
    order = Order(*json.loads(request))
    _become(order, streams)
    return order


def _become(order: Order, streams: list[int]) -> None:
    if order.session:
        os.setsid()
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


def _import_all() -> None:
    import importlib
    import pkgutil

    sys.path[0] = str(ROOT)
    for package in ("webhook", "certs"):
        for module in pkgutil.walk_packages([str(ROOT / package)], f"{package}."):
            if not module.name.endswith("__main__"):
                importlib.import_module(module.name)
    importlib.import_module("psycopg")
    importlib.import_module("uvloop")


def _run(order: Order) -> int:
    """Do what a process does; returns its exit code."""
    from tests import tuned
    from webhook.cli.main import main

    sys.argv = [COMMAND, *order.arguments]
    try:
        if not order.name:
            tuned.main(order.arguments)
        return main(order.arguments, order.name)
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:  # noqa: BLE001  # as the interpreter does
        traceback.print_exc()
        return 1


if __name__ == "__main__":
    _import_all()
    gc.freeze()
    code = _run(_serve(socket.socket(fileno=int(sys.argv[1]))))
    threading._shutdown()  # type: ignore[attr-defined]  # waits for other threads
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)  # to tear down all modules would take as long as to import them
