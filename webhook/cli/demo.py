"""`vgpu-webhook demo`: a standalone webhook and its console, three pods sent as an API server would, and what comes back."""

import base64
import contextlib
import http.client
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

import click
import jsonpatch
import orjson

from certs import pki as store
from webhook.cli.program import Command, report_warning
from webhook.cli.terminal import INDENT, MARK_STYLES, Style, Terminal
from webhook.errors import ConfigError
from webhook.inputs.files import read_bytes
from webhook.inputs.parse import parse_stream
from webhook.output.difference import difference
from webhook.settings.sources import SAMPLES

PORT = click.IntRange(0, 65535)
PODS = ("pod-repaired.yaml", "pod-warned.yaml", "pod-refused.yaml")
MAX_SAMPLE = 1 << 16  # bytes
MAX_LOG = 1000  # characters of a log that are shown, the last ones
READY_SECONDS = 60.0  # for a start or an answer on a machine that does much else; only a hang takes longer
STOP_SECONDS = 10.0
LOOK_SECONDS = 0.2  # between two looks whether both still run
ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)  # each ends it and its two processes


@click.command("demo", cls=Command)
@click.option("--port", type=PORT, default=8443, help="The port of the webhook; another one if it is in use.")
@click.option("--console-port", type=PORT, default=8480, help="The port of the console; another one if it is in use.")
@click.option("--once", is_flag=True, help="Stop after the demonstration.")
def command(port: int, console_port: int, once: bool) -> None:
    """Start a standalone webhook and its console, send three pods and show what happens."""
    terminal = Terminal()
    with listening(port, "--port") as webhook, listening(console_port, "--console-port") as console:
        port, console_port = webhook.getsockname()[1], console.getsockname()[1]
    for number in ENDING:  # also as a job in the background, where SIGINT is ignored
        signal.signal(number, _interrupt)
    try:
        with tempfile.TemporaryDirectory(prefix="vgpu-webhook-demo-") as directory:
            _run(Path(directory), port, console_port, terminal, once=once)
    except KeyboardInterrupt:
        terminal.line()  # the terminal shows ^C
        terminal.line("stopped")


def _run(directory: Path, port: int, console_port: int, terminal: Terminal, *, once: bool) -> None:
    audit, ca, certificate = directory / "audit.jsonl", directory / store.CA, directory / store.CERTIFICATE
    serve = ["serve", "--standalone", "--bind", f"127.0.0.1:{port}", "--state-dir", str(directory)]
    console = ["console", "--sample", "--bind", f"127.0.0.1:{console_port}", "--tls-cert", str(certificate)]
    for each in (serve, console):
        each += ["--audit-log", str(audit)]

    def ask(path: str, body: bytes | None = None) -> bytes:
        context = ssl.create_default_context(cafile=str(ca))
        connection = http.client.HTTPSConnection("localhost", port, timeout=READY_SECONDS, context=context)
        return _exchange(connection, path, body)

    def look() -> bytes:
        connection = http.client.HTTPConnection("127.0.0.1", console_port, timeout=READY_SECONDS)
        return _exchange(connection, "/static/icon.svg", None)

    with contextlib.ExitStack() as stack:
        running = [stack.enter_context(_started("the webhook", serve, directory / "serve.log"))]
        seconds = running[0].wait(lambda: ask("/readyz"))
        url = f"https://localhost:{port}"
        terminal.line((Style.BOLD, "vgpu-webhook"), f" serves on {url}, ready after {seconds:.1f} s")
        if not once:  # now, so that it comes up during the show
            running.append(stack.enter_context(_started("the console", console, directory / "console.log")))
        _show(ask, terminal)
        if once:
            return
        running[1].wait(look)
        _farewell(terminal, console_port, f"curl --cacert {ca} {url}/metrics", f"tail -f {audit}")
        while True:
            for child in running:
                child.check()
            time.sleep(LOOK_SECONDS)


@dataclass(frozen=True, slots=True)
class _Child:
    """A running command.

    Attributes:
        name: what it is, for people.
        process: its process.
        log: where its standard error goes.
    """

    name: str
    process: subprocess.Popen[bytes]
    log: Path

    def check(self) -> None:
        """Raises ConfigError with the end of its log if it has ended."""
        if self.process.poll() is not None:
            raise self._failed("exited unexpectedly")

    def wait(self, answer: Callable[[], bytes]) -> float:
        """Wait until it answers; returns how many seconds that took.

        Raises:
            ConfigError: it ends, or does not answer in time.
        """
        started = time.monotonic()
        while time.monotonic() - started < READY_SECONDS:
            self.check()
            with contextlib.suppress(OSError):
                answer()
                return time.monotonic() - started
            time.sleep(0.02)
        raise self._failed("did not become ready")

    def _failed(self, what: str) -> ConfigError:
        return ConfigError(f"{self.name} {what}:\n{self.log.read_text(errors='replace')[-MAX_LOG:].strip()}")


@contextlib.contextmanager
def _started(name: str, arguments: Iterable[str], log: Path) -> Iterator[_Child]:
    """Start `vgpu-webhook` with some arguments, and stop it at the end. Ctrl-C at the terminal does not reach it."""
    command = [sys.executable, "-m", "webhook", *arguments]
    with log.open("wb") as errors:
        process = subprocess.Popen(  # noqa: S603
            command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=errors, start_new_session=True
        )
    try:
        yield _Child(name, process, log)
    finally:
        process.terminate()
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _exchange(connection: http.client.HTTPConnection, path: str, body: bytes | None) -> bytes:
    with contextlib.closing(connection):
        connection.request("POST" if body else "GET", path, body, {"Content-Type": "application/json"})
        return connection.getresponse().read()


def _show(ask: Callable[[str, bytes | None], bytes], terminal: Terminal) -> None:
    """Send one pod after the other as the API server does, and show what its user would see."""

    def review(path: str, pod: dict[str, Any]) -> dict[str, Any]:
        kind = {"group": "", "version": "v1", "kind": "Pod"}
        request = {"uid": str(uuid.uuid4()), "kind": kind, "operation": "CREATE", "namespace": "default", "object": pod}
        request["userInfo"] = {"username": "demo"}
        body = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}
        return dict(orjson.loads(ask(path, orjson.dumps(body)))["response"])

    terminal.line("It uses a self-signed CA and the sample nodes of webhook/samples/fleet.yaml.")
    for number, name in enumerate(PODS, start=1):
        text = read_bytes(SAMPLES / name, MAX_SAMPLE)
        (pod,) = parse_stream(text, name)
        terminal.line()
        terminal.line((Style.BOLD, f"{number}  webhook/samples/{name}"))
        terminal.paragraph(INDENT, (), text.decode().splitlines()[0].removeprefix("# "))
        mutated = review("/mutate", pod)
        result = jsonpatch.apply_patch(pod, orjson.loads(base64.b64decode(mutated.get("patch", "W10="))))
        judged = review("/validate", result)
        for line in difference(pod, result):
            terminal.line(INDENT * 2, (MARK_STYLES[line.mark], line.shown))
        for warning in mutated.get("warnings", []) + judged.get("warnings", []):
            terminal.paragraph(INDENT, ((Style.WARNING, "Warning: "),), warning)
        if judged["allowed"]:
            created = (Style.GOOD, f"pod/{pod['metadata']['name']} created")
            terminal.line(INDENT, created, " (simulated: there is no cluster)")
            continue
        terminal.line(INDENT, (Style.REFUSED, "Error from server (Forbidden): "), f"error when creating {name!r}:")
        for message in judged["status"]["message"].splitlines():
            rule, _, sentence = message.partition(": ")
            head = ((Style.BOLD, f"{rule}: "),) if sentence else ()
            terminal.paragraph(INDENT * 2, head, sentence or message)


def _farewell(terminal: Terminal, console_port: int, metrics: str, audit: str) -> None:
    address = (Style.REPAIRED, f"http://localhost:{console_port}")
    terminal.line()
    terminal.line((Style.BOLD, "The console: "), address, (Style.DIM, "   # these decisions, and a playground"))
    terminal.line((Style.BOLD, "Try next, in another terminal:"))
    for line, what in (
        ("vgpu-webhook review --sample --explain webhook/samples/pod-refused.yaml", "the same engine, offline"),
        ("vgpu-webhook rules", "all rules; add an id to read what it checks, and why"),
        (metrics, "the metrics"),
        (audit, "the audit log, one line per decision"),
    ):
        terminal.line(INDENT, (Style.REPAIRED, _runnable(line)), (Style.DIM, f"   # {what}"))
    terminal.line((Style.BOLD, "Serving. Press Ctrl-C to stop."))
    sys.stdout.flush()


def _interrupt(_number: int, _frame: FrameType | None) -> NoReturn:
    """Stop. A second signal is ignored: it would interrupt the stopping and leave processes behind."""
    for number in ENDING:
        signal.signal(number, signal.SIG_IGN)
    raise KeyboardInterrupt


def listening(wanted: int, option: str) -> socket.socket:
    """A socket that listens on the wanted port of 127.0.0.1, or on a free one with a warning that names the option.

    Raises:
        ConfigError: no port can be bound.
    """
    for number in (wanted, 0):
        probe = socket.socket()
        try:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(("127.0.0.1", number))
            probe.listen()
        except OSError:
            probe.close()
            continue
        if number != wanted:
            port = probe.getsockname()[1]
            report_warning(f"port {wanted} is in use or not allowed; port {port} is used instead: choose with {option}")
        return probe
    raise ConfigError(f"port {wanted} is not available; choose another with {option}")


def _runnable(command: str) -> str:
    """The command in a form that can be pasted even if the virtual environment is not active."""
    program = Path(sys.argv[0])
    if not command.startswith("vgpu-webhook") or program.name != "vgpu-webhook":
        return command
    try:
        return str(program.absolute().relative_to(Path.cwd())) + command.removeprefix("vgpu-webhook")
    except ValueError:
        return command
