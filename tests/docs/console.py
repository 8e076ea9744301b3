"""A console that is started with the command of the documentation, on a free port."""

import shlex
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection

from tests.console.running import running
from tests.docs.generated import DOCS
from tests.docs.markdown import blocks
from tests.server.program import until

DEFAULT_ADDRESS = "localhost:8480"


@contextmanager
def as_shown() -> Iterator[int]:
    """Start the console of the samples with the command of docs/console.md, on another port, which is yielded."""
    lines = [line for block in blocks((DOCS / "console.md").read_text(), "sh") for line in block.text.splitlines()]
    (command,) = [line for line in lines if line.startswith("vgpu-webhook console --sample")]
    with running(*shlex.split(command)[3:]) as console:
        until(lambda: '"caughtUp":true' in get(console.port, "/api/v1/decisions?limit=1"))
        yield console.port


def get(port: int, path: str, **headers: str) -> str:
    """The status and the body of a response."""
    connection = HTTPConnection("127.0.0.1", port)
    try:
        connection.request("GET", path, headers=headers)
        response = connection.getresponse()
        return f"{response.status}: {response.read().decode()}"
    finally:
        connection.close()


def curl(command: str, port: int) -> str:
    """The output of a shown curl command with another port; without curl, of the same request."""
    *words, address = shlex.split(command)
    assert words == ["curl", "-s"]
    host, _, path = address.partition("/")
    assert host == DEFAULT_ADDRESS
    if shutil.which("curl") is None:
        return get(port, f"/{path}").removeprefix("200: ")
    done = [*words, "--noproxy", "*", f"localhost:{port}/{path}"]
    return subprocess.run(done, capture_output=True, text=True, check=True).stdout
