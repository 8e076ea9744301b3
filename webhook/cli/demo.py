"""`vgpu-webhook demo`: a standalone webhook and its console, three pods sent as an API server would, and what comes back."""

import http.client
import os
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import NoReturn

from certs import store
from webhook.cli.background import Background, free_port
from webhook.cli.demo_pods import Show, Webhook
from webhook.cli.parser import Parser, port
from webhook.cluster.files import SAMPLES
from webhook.errors import ConfigError
from webhook.report.terminal import INDENT, Style, Terminal

DEFAULT_PORT = 8443
DEFAULT_CONSOLE_PORT = 8480
READY_SECONDS = 15.0
ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)  # each ends it and its children
LOOK_SECONDS = 0.2  # between two looks whether both still run


def main(argv: Sequence[str]) -> int:
    """Show the webhook at work, then keep it and its console serving until Ctrl-C."""
    parser = Parser(
        prog="vgpu-webhook demo",
        description="Start a standalone webhook and its console, send it three pods, show what happens.",
    )
    add = parser.add_argument
    add("--port", type=port, default=DEFAULT_PORT, help=f"default {DEFAULT_PORT}; a free one if that is taken")
    add(
        "--console-port",
        type=port,
        default=DEFAULT_CONSOLE_PORT,
        help=f"default {DEFAULT_CONSOLE_PORT}; a free one if that is taken",
    )
    add("--once", action="store_true", help="stop after the show instead of serving on")
    arguments = parser.parse_args(argv)
    webhook_port = free_port(arguments.port, "--port")
    console_port = free_port(arguments.console_port, "--console-port")
    with tempfile.TemporaryDirectory(prefix="vgpu-webhook-demo-") as directory:
        demo = _Demo(Path(directory), webhook_port, console_port, Terminal(sys.stdout, os.environ))
        return demo.run(once=arguments.once)


@dataclass(frozen=True, slots=True)
class _Demo:
    directory: Path
    port: int
    console_port: int
    terminal: Terminal

    def run(self, *, once: bool) -> int:
        """Neither of the two takes the other with it when it ends by itself."""
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
                return 0
            self._farewell(running[1])
            self._watch(running)
        except KeyboardInterrupt:
            self.terminal.line()  # the terminal shows ^C
            self.terminal.line("stopped")
            return 0
        finally:
            for each in running:
                each.stop()
        raise ConfigError("the webhook and the console ended by themselves")

    def _watch(self, running: Sequence[Background]) -> None:
        """Until both have ended."""
        left = list(running)
        while left:
            for each in [each for each in left if each.ended]:
                left.remove(each)
                self.terminal.line((Style.BAD, f"{each.name} ended by itself"), "; its log ends:")
                self._tell(each.why())
                for other in left:
                    self.terminal.line(f"{other.name} goes on")
                sys.stdout.flush()
            time.sleep(LOOK_SECONDS)

    def _tell(self, text: str) -> None:
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
        """On the same samples; its doctor looks at a sample cluster with some faults."""
        bind, audit = f"127.0.0.1:{self.console_port}", str(self._audit)
        certificate, cluster = str(self.directory / store.CERTIFICATE), str(SAMPLES / "cluster")
        command = ["console", "--sample", "--bind", bind, "--audit-log", audit, "--tls-cert", certificate]
        return [*command, "--doctor-from", cluster]

    def _wait(self, child: Background, answers: Callable[[], bool]) -> float:
        """Wait until somebody answers, and tell how many seconds that took."""
        started = time.monotonic()
        while time.monotonic() - started < READY_SECONDS and not child.ended:
            try:
                if answers():
                    return time.monotonic() - started
            except OSError:
                time.sleep(0.02)
        raise ConfigError(f"{child.name} did not become ready:\n{child.why()}")

    def _farewell(self, console: Background) -> None:
        url, ca = f"https://localhost:{self.port}", self._webhook.ca
        self.terminal.line()
        self._show_address(console)
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

    def _show_address(self, console: Background) -> None:
        """Where the console is, or why it is not: the webhook does without."""
        try:
            self._wait(console, self._console_answers)
        except ConfigError as error:
            self._tell(str(error))
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
    """Stop; whoever is impatient must not interrupt the stopping, which would leave children behind."""
    for number in ENDING:
        signal.signal(number, signal.SIG_IGN)
    raise KeyboardInterrupt


def _runnable(command: str) -> str:
    """The command as it can be pasted, also where the virtual environment is not active."""
    program = Path(sys.argv[0])
    if not command.startswith("vgpu-webhook") or program.name != "vgpu-webhook":
        return command
    try:
        return str(program.absolute().relative_to(Path.cwd())) + command.removeprefix("vgpu-webhook")
    except ValueError:
        return command
