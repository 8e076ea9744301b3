"""`vgpu-webhook demo`: a standalone webhook and its console, three pods sent as an API server would, and what comes back."""

import base64
import http.client
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

import click
import jsonpatch
import orjson

from certs import pki as store
from webhook.cli.options import PORT
from webhook.cli.program import Command, report_warning
from webhook.errors import ConfigError
from webhook.inputs.files import read_bytes
from webhook.inputs.parse import parse_stream
from webhook.render.terminal import INDENT, Style, Terminal
from webhook.render.yaml import difference
from webhook.settings.files import SAMPLES

STOP_SECONDS = 10.0
MAX_LOG = 4000  # characters of a log that are looked at, the last ones
MAX_LINES = 8  # of which are shown


@dataclass(slots=True)
class Background:
    """A running command.

    Attributes:
        name: what it is, for people.
        process: its process.
        log: where its standard error goes.
    """

    name: str
    process: subprocess.Popen[bytes]
    log: Path

    @classmethod
    def start(cls, name: str, arguments: Sequence[str], log: Path) -> "Background":
        """Start `vgpu-webhook` with some arguments. Ctrl-C at the terminal does not reach it."""
        with log.open("wb") as errors:
            process = subprocess.Popen(  # noqa: S603
                [sys.executable, "-m", "webhook", *arguments],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=errors,
                start_new_session=True,
            )
        return cls(name, process, log)

    @property
    def ended(self) -> bool:
        """Whether it has ended."""
        return self.process.poll() is not None

    def log_end(self) -> str:
        """Returns the end of its log."""
        try:
            text = self.log.read_text(errors="replace")[-MAX_LOG:].strip()
        except OSError as error:
            return str(error)
        return "\n".join(text.splitlines()[-MAX_LINES:])

    def stop(self) -> None:
        """Terminate it; kill it if it does not end in time."""
        if self.ended:
            return
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()


def free_port(wanted: int, option: str) -> int:
    """Returns the wanted port of 127.0.0.1, or a free one.

    Raises:
        ConfigError: no port can be bound; the message names the option for another.
    """
    for number in (wanted, 0):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", number))
            except OSError as error:
                reason = str(error.strerror).lower()
                continue
            found: int = probe.getsockname()[1]
        if number != wanted:
            report_warning(
                f"port {wanted}: {reason}; port {found} is used instead: end what listens on {wanted}, or choose with {option}"
            )
        return found
    raise ConfigError(f"port {wanted} is not available; choose another with {option}")


PODS = ("pod-repaired.yaml", "pod-warned.yaml", "pod-refused.yaml")
MAX_SAMPLE = 1 << 16  # bytes


@dataclass(frozen=True, slots=True)
class Webhook:
    """A webhook on this machine.

    Attributes:
        port: where it listens.
        ca: the CA of its certificate, a PEM file.
    """

    port: int
    ca: Path

    def get(self, path: str) -> bytes:
        """Returns the answer to a GET.

        Raises:
            OSError: the webhook does not answer.
        """
        return self._exchange("GET", path, None)

    def review(self, path: str, pod: dict[str, Any]) -> dict[str, Any]:
        """Returns the answer to the creation of a pod, at `/mutate` or `/validate`."""
        kind = {"group": "", "version": "v1", "kind": "Pod"}
        request = {"uid": str(uuid.uuid4()), "kind": kind, "operation": "CREATE", "namespace": "default", "object": pod}
        request["userInfo"] = {"username": "demo"}
        review = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}
        answer: dict[str, Any] = orjson.loads(self._exchange("POST", path, orjson.dumps(review)))
        return dict(answer["response"])

    def _exchange(self, method: str, path: str, body: bytes | None) -> bytes:
        context = ssl.create_default_context(cafile=str(self.ca))
        connection = http.client.HTTPSConnection("localhost", self.port, timeout=10, context=context)
        try:
            connection.request(method, path, body, {"Content-Type": "application/json"})
            return connection.getresponse().read()
        finally:
            connection.close()


@dataclass(frozen=True, slots=True)
class Show:
    """Sends the pods, and shows the answers."""

    webhook: Webhook
    terminal: Terminal

    def run(self) -> None:
        """Send one pod after the other."""
        self.terminal.line("It uses a self-signed CA and the sample nodes of webhook/samples/fleet.yaml.")
        for number, name in enumerate(PODS, start=1):
            text = read_bytes(SAMPLES / name, MAX_SAMPLE)
            comment = text.decode().splitlines()[0].removeprefix("# ")
            (pod,) = parse_stream(text, name)
            self.terminal.line()
            self.terminal.line((Style.BOLD, f"{number}  webhook/samples/{name}"))
            self.terminal.paragraph(INDENT, (), comment)
            self._send(name, pod)

    def _send(self, name: str, pod: dict[str, Any]) -> None:
        """Mutate, then validate the result, as the API server does; show what its user would see."""
        mutated = self.webhook.review("/mutate", pod)
        operations = orjson.loads(base64.b64decode(mutated.get("patch", "W10=")))
        result = jsonpatch.apply_patch(pod, operations)
        judged = self.webhook.review("/validate", result)
        for line in difference(pod, result):
            self.terminal.line(INDENT * 2, (line.style, line.shown))
        for warning in mutated.get("warnings", []) + judged.get("warnings", []):
            self.terminal.paragraph(INDENT, ((Style.WARNING, "Warning: "),), warning)
        if judged["allowed"]:
            self.terminal.line(
                INDENT, (Style.GOOD, f"pod/{pod['metadata']['name']} created"), " (simulated: there is no cluster)"
            )
            return
        self.terminal.line(INDENT, (Style.REFUSED, "Error from server (Forbidden): "), f"error when creating {name!r}:")
        for line in judged["status"]["message"].splitlines():
            rule, _, sentence = line.partition(": ")
            head = ((Style.BOLD, f"{rule}: "),) if sentence else ()
            self.terminal.paragraph(INDENT * 2, head, sentence or line)


DEFAULT_PORT = 8443
DEFAULT_CONSOLE_PORT = 8480
READY_SECONDS = 15.0
ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)  # each ends it and its children
LOOK_SECONDS = 0.2  # between two looks whether both still run


@click.command("demo", cls=Command)
@click.option("--port", type=PORT, default=DEFAULT_PORT, help="The port of the webhook; another one if it is in use.")
@click.option(
    "--console-port",
    type=PORT,
    default=DEFAULT_CONSOLE_PORT,
    help="The port of the console; another one if it is in use.",
)
@click.option("--once", is_flag=True, help="Stop after the demonstration.")
def command(port: int, console_port: int, once: bool) -> None:
    """Start a standalone webhook and its console, send three pods and show what happens."""
    webhook_port = free_port(port, "--port")
    console_port = free_port(console_port, "--console-port")
    with tempfile.TemporaryDirectory(prefix="vgpu-webhook-demo-") as directory:
        _Demo(Path(directory), webhook_port, console_port, Terminal()).run(once=once)


@dataclass(frozen=True, slots=True)
class _Demo:
    directory: Path
    port: int
    console_port: int
    terminal: Terminal

    def run(self, *, once: bool) -> None:
        """Run until Ctrl-C; if one of the two processes ends by itself, the other goes on."""
        for number in ENDING:  # also as a job in the background, where SIGINT is ignored
            signal.signal(number, _interrupt)
        running: list[Background] = []
        try:
            running.append(Background.start("the webhook", self._serve(), self.directory / "serve.log"))
            seconds = self._wait(running[0], lambda: bool(self._webhook.get("/readyz")))
            self.terminal.line(
                (Style.BOLD, "vgpu-webhook"),
                f" serves on https://localhost:{self.port}, ready after {seconds:.1f} s",
            )
            if not once:  # now, so that it comes up during the show
                running.append(Background.start("the console", self._console(), self.directory / "console.log"))
            Show(self._webhook, self.terminal).run()
            if once:
                return
            self._farewell(running[1])
            self._watch(running)
        except KeyboardInterrupt:
            self.terminal.line()  # the terminal shows ^C
            self.terminal.line("stopped")
            return
        finally:
            for each in running:
                each.stop()
        raise ConfigError("the webhook and the console exited unexpectedly")

    def _watch(self, running: Sequence[Background]) -> None:
        """Until both have ended."""
        left = list(running)
        while left:
            for each in [each for each in left if each.ended]:
                left.remove(each)
                self.terminal.line((Style.BAD, f"{each.name} exited unexpectedly"), "; the end of its log:")
                self._dimmed(each.log_end())
                for other in left:
                    self.terminal.line(f"{other.name} keeps running")
                sys.stdout.flush()
            time.sleep(LOOK_SECONDS)

    def _dimmed(self, text: str) -> None:
        for line in text.splitlines():
            self.terminal.line(INDENT, (Style.DIM, line))

    @property
    def _audit(self) -> Path:
        return self.directory / "audit.jsonl"

    @property
    def _webhook(self) -> Webhook:
        return Webhook(self.port, self.directory / store.CA)

    def _serve(self) -> list[str]:
        bind, directory, audit = f"127.0.0.1:{self.port}", str(self.directory), str(self._audit)
        return ["serve", "--standalone", "--bind", bind, "--state-dir", directory, "--audit-log", audit]

    def _console(self) -> list[str]:
        """With the same samples; its doctor examines a sample cluster with some faults."""
        bind, audit = f"127.0.0.1:{self.console_port}", str(self._audit)
        certificate, cluster = str(self.directory / store.CERTIFICATE), str(SAMPLES / "cluster")
        command = ["console", "--sample", "--bind", bind, "--audit-log", audit, "--tls-cert", certificate]
        return [*command, "--doctor-from", cluster]

    def _wait(self, child: Background, answers: Callable[[], bool]) -> float:
        """Wait until the child answers; returns how many seconds that took."""
        started = time.monotonic()
        while time.monotonic() - started < READY_SECONDS and not child.ended:
            try:
                if answers():
                    return time.monotonic() - started
            except OSError:
                time.sleep(0.02)
        raise ConfigError(f"{child.name} did not become ready:\n{child.log_end()}")

    def _farewell(self, console: Background) -> None:
        url, ca = f"https://localhost:{self.port}", self._webhook.ca
        self.terminal.line()
        self._show_address(console)
        self.terminal.line((Style.BOLD, "Try next, in another terminal:"))
        for command, what in (
            ("vgpu-webhook review --sample --explain webhook/samples/pod-refused.yaml", "the same engine, offline"),
            ("vgpu-webhook rules", "all rules; add an id to read what it checks, and why"),
            (f"curl --cacert {ca} {url}/metrics", "the metrics"),
            (f"tail -f {self._audit}", "the audit log, one line per decision"),
        ):
            self.terminal.line(INDENT, (Style.REPAIRED, _runnable(command)), (Style.DIM, f"   # {what}"))
        self.terminal.line((Style.BOLD, "Serving. Press Ctrl-C to stop."))
        sys.stdout.flush()

    def _show_address(self, console: Background) -> None:
        """Print the address of the console, or why it did not start; the webhook works without it."""
        try:
            self._wait(console, self._console_answers)
        except ConfigError as error:
            self._dimmed(str(error))
            return
        address = (Style.REPAIRED, f"http://localhost:{self.console_port}")
        what = (Style.DIM, "   # these decisions, and a playground")
        self.terminal.line((Style.BOLD, "The console: "), address, what)

    def _console_answers(self) -> bool:
        connection = http.client.HTTPConnection("127.0.0.1", self.console_port, timeout=10)
        try:
            connection.request("GET", "/static/icon.svg")
            return connection.getresponse().status == http.HTTPStatus.OK
        finally:
            connection.close()


def _interrupt(_number: int, _frame: FrameType | None) -> NoReturn:
    """Stop. A second signal is ignored: it would interrupt the stopping and leave children behind."""
    for number in ENDING:
        signal.signal(number, signal.SIG_IGN)
    raise KeyboardInterrupt


def _runnable(command: str) -> str:
    """The command in a form that can be pasted even if the virtual environment is not active."""
    program = Path(sys.argv[0])
    if not command.startswith("vgpu-webhook") or program.name != "vgpu-webhook":
        return command
    try:
        return str(program.absolute().relative_to(Path.cwd())) + command.removeprefix("vgpu-webhook")
    except ValueError:
        return command
