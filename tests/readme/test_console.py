"""What the README says of the console is what a console says that was started as the README says."""

import json
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path

import pytest

from tests.readme.pages import blocks, prose, spans, tables, targets
from tests.server.program import COMMAND, free_port, until
from webhook.audit import store
from webhook.console import guard
from webhook.console.api.review import MAX_MANIFEST

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
USUAL = "localhost:8480"
UNPROVOKED = {"connection refused", "busy with other questions"}  # kubectl's; and what takes seconds to bring about


@contextmanager
def started(*options: str) -> Iterator[int]:
    """A console at a free port, which is given."""
    port = free_port()
    process = subprocess.Popen(
        [COMMAND, "console", "--bind", f"127.0.0.1:{port}", *options], cwd=ROOT, stderr=subprocess.DEVNULL
    )

    def answers() -> bool:
        assert process.poll() is None
        try:
            return '"caughtUp":true' in ask(port, "/api/v1/decisions?limit=1")
        except OSError:
            return False

    try:
        until(answers, 20)
        yield port
    finally:
        process.terminate()
        process.wait(10)


def ask(port: int, path: str, **headers: str) -> str:
    connection = HTTPConnection("127.0.0.1", port, timeout=20)
    try:
        connection.request("GET", path, headers=headers)
        answer = connection.getresponse()
        return f"{answer.status}: {answer.read().decode()}"
    finally:
        connection.close()


@pytest.fixture(scope="module")
def shown() -> Iterator[int]:
    """The console of the samples, by the command that the page shows."""
    lines = [line for block in blocks(README, "text") for line in block.text.splitlines()]
    (command,) = [line for line in lines if line.startswith("vgpu-webhook console --sample")]
    with started(*shlex.split(command)[2:]) as port:
        yield port


def test_what_curl_is_shown_to_print_is_what_it_prints(shown: int):
    asked = [block.text for block in blocks(README, "console") if block.text.startswith("$ curl ")]
    assert asked
    for text in asked:
        command, _, printed = text.removeprefix("$ ").partition("\n")
        assert f"{answered(shlex.split(command), shown)}\n" == printed


def answered(words: list[str], port: int) -> str:
    """What a shown curl command prints, asked of another port; without curl, what it would be answered."""
    *curl, address = words
    assert curl == ["curl", "-s"]
    host, _, path = address.partition("/")
    assert host == USUAL
    if shutil.which("curl") is None:
        return ask(port, f"/{path}").removeprefix("200: ")
    command = [*curl, "--noproxy", "*", f"localhost:{port}/{path}"]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=20, check=True).stdout


def test_the_description_of_the_api_is_where_it_says(shown: int):
    (path,) = [span for span in spans(prose(README)) if span.endswith("/openapi.json")]
    status, _, described = ask(shown, path).partition(": ")
    assert (status, json.loads(described)["openapi"][:2]) == ("200", "3.")


def quoted() -> dict[str, str]:
    """What the page quotes of the console, and what it says before each quotation."""
    (table,) = [table for table in tables(README) if any("port-forward" in row[0] for row in table)]
    cells = [row[0].split('"') for row in table[1:]]
    return {cell[1]: cell[0] for cell in cells if len(cell) > 1}


def test_its_complaints_are_quoted_as_they_are(shown: int, tmp_path: Path):
    provoked = {
        "this console answers to localhost only": ask(shown, "/", Host="elsewhere.example"),
        "another site's page may not ask this console": ask(shown, "/api/v1/fleet", Origin="http://elsewhere.example"),
        "Nothing matches": ask(shown, "/decisions?name=nobody"),
        "not checked": ask(shown, "/health?wait=20"),
    }
    with started() as port:
        provoked |= {"No audit log is read": ask(port, "/decisions"), "The fleet is not known": ask(port, "/fleet")}
    with started("--audit-log", str(tmp_path / "audit.jsonl")) as port:
        provoked["is not there yet"] = provoked["Nothing is recorded yet"] = ask(port, "/decisions")
    assert quoted().keys() - UNPROVOKED == provoked.keys()
    for words, answer in provoked.items():
        assert words in answer.replace("&#39;", "'")
        status = quoted()[words].partition(":")[0]
        assert answer.startswith(status if status.isdigit() else "200")


def test_its_bounds_are_those_that_hold():
    for told in (
        f"the latest {store.MOST:,} decisions, in {store.MOST_BYTES >> 20} MiB",
        f"at most {MAX_MANIFEST >> 10} KiB, a request {guard.MAX_BODY >> 20} MiB",
    ):
        assert told in " ".join(README.split())
    assert guard.HEAVY == 2


def test_every_screenshot_is_shown():
    pictures = {path.relative_to(ROOT).as_posix() for path in ROOT.glob("tests/browser/screenshots/*.png")}
    assert pictures == {target for target in targets(prose(README)) if target.endswith(".png")} != set()
