"""`vgpu-webhook demo`: a standalone webhook, three pods sent to it as an API server would, and what comes back."""

import argparse
import base64
import http.client
import os
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

import jsonpatch
import orjson

from certs import store
from webhook.cluster.documents import parse_documents
from webhook.cluster.files import read_bytes
from webhook.errors import ConfigError
from webhook.report.manifest import difference
from webhook.report.terminal import INDENT, Style, Terminal

PODS = ("pod-repaired.yaml", "pod-warned.yaml", "pod-refused.yaml")
DEFAULT_PORT = 8443
READY_SECONDS = 15.0
STOP_SECONDS = 10.0
MAX_SAMPLE = 1 << 16  # bytes


def main(argv: Sequence[str]) -> int:
    """Show the webhook at work, then keep it serving until Ctrl-C."""
    parser = argparse.ArgumentParser(
        prog="vgpu-webhook demo", description="Start a standalone webhook, send it three pods, show what happens."
    )
    parser.add_argument(
        "--port", type=int, default=DEFAULT_PORT, help=f"default {DEFAULT_PORT}; a free one if that is taken"
    )
    parser.add_argument("--once", action="store_true", help="stop after the show instead of serving on")
    arguments = parser.parse_args(argv)
    with tempfile.TemporaryDirectory(prefix="vgpu-webhook-demo-") as directory:
        return _Demo(Path(directory), _free_port(arguments.port), Terminal(sys.stdout, os.environ)).run(arguments.once)


@dataclass(frozen=True, slots=True)
class _Demo:
    directory: Path
    port: int
    terminal: Terminal

    def run(self, once: bool) -> int:
        for number in (
            signal.SIGINT,
            signal.SIGTERM,
        ):  # both end it, and the server with it, also as a job in the background
            signal.signal(number, signal.default_int_handler)
        server = subprocess.Popen(  # noqa: S603
            self._command(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=self._log.open("wb"),
            start_new_session=True,  # Ctrl-C is for us alone; we stop the server
        )
        try:
            self._wait(server)
            self._show()
            if once:
                return 0
            self._farewell()
            server.wait()
        except KeyboardInterrupt:
            self.terminal.line("\nstopped")
            return 0
        finally:
            _stop(server)
        raise ConfigError(f"the webhook ended by itself:\n{self._log.read_text()}")

    @property
    def _log(self) -> Path:
        return self.directory / "serve.log"

    @property
    def _audit(self) -> Path:
        return self.directory / "audit.jsonl"

    @property
    def _ca(self) -> Path:
        return self.directory / store.CA

    def _command(self) -> list[str]:
        bind, directory, audit = f"127.0.0.1:{self.port}", str(self.directory), str(self._audit)
        command = [sys.executable, "-m", "webhook.cli.main", "serve", "--standalone", "--bind", bind]
        return [*command, "--state-dir", directory, "--audit-log", audit]

    def _wait(self, server: subprocess.Popen[bytes]) -> None:
        started = time.monotonic()
        while time.monotonic() - started < READY_SECONDS:
            if server.poll() is not None:
                break
            try:
                if self._get("/readyz"):
                    seconds = time.monotonic() - started
                    self.terminal.line(
                        (Style.BOLD, "vgpu-webhook"),
                        f" serves on https://localhost:{self.port}, ready after {seconds:.1f} s",
                    )
                    return
            except OSError:
                time.sleep(0.02)
        raise ConfigError(f"the webhook did not become ready:\n{self._log.read_text()}")

    def _show(self) -> None:
        self.terminal.line("It has made its own certificate and knows a sample fleet of four GPU nodes.")
        for number, name in enumerate(PODS, start=1):
            text = read_bytes(Path(str(files("webhook") / "samples" / name)), MAX_SAMPLE)
            comment = text.decode().splitlines()[0].removeprefix("# ")
            (pod,) = parse_documents(text, name)
            self.terminal.line()
            self.terminal.line((Style.BOLD, f"{number}  webhook/samples/{name}"))
            self.terminal.paragraph(INDENT, (), comment)
            self._send(name, pod)

    def _send(self, name: str, pod: dict[str, Any]) -> None:
        """Mutate, then validate the result, as the API server does; tell what its user would see."""
        mutated = self._review("/mutate", pod)
        operations = orjson.loads(base64.b64decode(mutated.get("patch", "W10=")))
        result = jsonpatch.apply_patch(pod, operations)
        judged = self._review("/validate", result)
        for line in difference(pod, result):
            self.terminal.line(INDENT * 2, (line.style, line.shown))
        for warning in mutated.get("warnings", []) + judged.get("warnings", []):
            self.terminal.paragraph(INDENT, ((Style.WARNING, "Warning: "),), warning)
        if judged["allowed"]:
            self.terminal.line(
                INDENT, (Style.GOOD, f"pod/{pod['metadata']['name']} created"), " (would be: nothing is stored here)"
            )
            return
        self.terminal.line(INDENT, (Style.REFUSED, "Error from server (Forbidden): "), f"error when creating {name!r}:")
        for line in judged["status"]["message"].splitlines():
            rule, _, sentence = line.partition(": ")
            head = ((Style.BOLD, f"{rule}: "),) if sentence else ()
            self.terminal.paragraph(INDENT * 2, head, sentence or line)

    def _farewell(self) -> None:
        url, ca = f"https://localhost:{self.port}", self._ca
        self.terminal.line()
        self.terminal.line((Style.BOLD, "Try next, in another terminal:"))
        for command, what in (
            ("vgpu-webhook review --sample --explain webhook/samples/pod-refused.yaml", "the same engine, offline"),
            ("vgpu-webhook rules", "every rule; with an id, why it is there"),
            (f"curl --cacert {ca} {url}/metrics", "what Prometheus sees"),
            (f"tail -f {self._audit}", "one line a decision"),
        ):
            self.terminal.line(INDENT, (Style.REPAIRED, _runnable(command)), (Style.DIM, f"   # {what}"))
        self.terminal.line((Style.BOLD, "Serving. Ctrl-C stops it."))
        sys.stdout.flush()

    def _review(self, path: str, pod: dict[str, Any]) -> dict[str, Any]:
        kind = {"group": "", "version": "v1", "kind": "Pod"}
        request = {"uid": str(uuid.uuid4()), "kind": kind, "operation": "CREATE", "namespace": "default", "object": pod}
        request["userInfo"] = {"username": "demo"}
        review = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}
        answer: dict[str, Any] = orjson.loads(self._exchange("POST", path, orjson.dumps(review)))
        return dict(answer["response"])

    def _get(self, path: str) -> bytes:
        return self._exchange("GET", path, None)

    def _exchange(self, method: str, path: str, body: bytes | None) -> bytes:
        context = ssl.create_default_context(cafile=str(self._ca))
        connection = http.client.HTTPSConnection("localhost", self.port, timeout=10, context=context)
        try:
            connection.request(method, path, body, {"Content-Type": "application/json"})
            return connection.getresponse().read()
        finally:
            connection.close()


def _runnable(command: str) -> str:
    """The command as it can be pasted, also where the virtual environment is not active."""
    program = Path(sys.argv[0])
    if not command.startswith("vgpu-webhook") or program.name != "vgpu-webhook":
        return command
    try:
        return str(program.absolute().relative_to(Path.cwd())) + command.removeprefix("vgpu-webhook")
    except ValueError:
        return command


def _free_port(wanted: int) -> int:
    """The wanted port of 127.0.0.1, or one that is free."""
    for port in (wanted, 0):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            found: int = probe.getsockname()[1]
            return found
    raise ConfigError(f"port {wanted} cannot be bound; give another with --port")


def _stop(server: subprocess.Popen[bytes]) -> None:
    if server.poll() is None:
        server.send_signal(signal.SIGTERM)
        try:
            server.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            server.kill()
