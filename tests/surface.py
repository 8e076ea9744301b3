"""Records all output of the program, so that two checkouts can be compared.

    python -m tests.surface before --command ../other-checkout/.venv/bin/vgpu-webhook
    python -m tests.surface after --against before
    diff -r before after

The script uses only commands, HTTP endpoints and files of the program, never its modules. Both recordings must read the
inputs of the same checkout, the one that contains this script.
"""

import argparse
import json
import re
import ssl
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import product
from pathlib import Path
from typing import Any

from tests.ledger import record
from tests.server.program import COMMAND, free_port, until

ROOT = Path(__file__).parents[1]
DATA = Path("tests/data")  # relative to ROOT, as file names are printed

CONFIG = f"--device-config {DATA}/config/device-config.yaml"
EVERY_FAMILY = f"{CONFIG} --fleet {DATA}/fleets/every-family.yaml"
SAMPLES = "webhook/samples"
LOG = f"{SAMPLES}/audit.jsonl"
REVIEWS = sorted(str(path.relative_to(ROOT)) for path in (ROOT / DATA / "reviews").glob("*.json"))
EXAMPLES = sorted(str(path.relative_to(ROOT)) for path in (ROOT / "webhook/rules/examples").glob("*/*.yaml"))
COMMANDS = f"""
rules
rules -o json
manifests {CONFIG}
manifests {CONFIG} --all-pods -o json
policy default
policy schema
policy check {SAMPLES}/policy.yaml
doctor --from {DATA}/cluster-healthy
doctor --from {DATA}/cluster-healthy -o json
doctor --from {SAMPLES}/cluster
decisions {LOG}
decisions -o json {LOG}
decisions --summary {LOG}
decisions --summary -o json {LOG}
replay --fleet {SAMPLES}/fleet.yaml {LOG}
replay --fleet {SAMPLES}/fleet.yaml --what-if split=2 -o json {LOG}
scan {EVERY_FAMILY} {" ".join(REVIEWS)}
scan -o json {EVERY_FAMILY} {" ".join(REVIEWS)}
"""

# What differs between runs: metrics that are left out, fields of JSON, and other text.
VOLATILE_METRICS = re.compile(r"_seconds|_created|^process_|^python_|^#|duration|timestamp")
VOLATILE_FIELDS = re.compile(r'("(?:time|durationUs|inUseSeconds|seconds|uptimeSeconds|lookingSeconds)": )[^,\n]+')
VOLATILE_TEXT = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?Z?|127\.0\.0\.1:\d+|/tmp/[^\s'\"]+")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.surface", description=__doc__.splitlines()[0])
    parser.add_argument("directory", type=Path, help="an empty one, or one that does not exist yet")
    parser.add_argument("--command", type=Path, default=COMMAND, help="the vgpu-webhook to record")
    parser.add_argument(
        "--against", type=Path, help="an earlier recording, named after its commit; prints what differs"
    )
    arguments = parser.parse_args()
    arguments.directory.mkdir(parents=True, exist_ok=True)
    recorder = Recorder(arguments.directory, arguments.command.absolute())
    recorder.reviews()
    recorder.oracle()
    recorder.commands()
    recorder.server()
    recorder.console()
    if arguments.against:
        compare(arguments.against, arguments.directory)


def compare(before: Path, after: Path) -> None:
    differ = subprocess.run(["diff", "-rq", before, after], capture_output=True, text=True, check=False).stdout
    sys.stdout.write(differ)
    files = {path.relative_to(root) for root in (before, after) for path in root.rglob("*") if path.is_file()}
    record("surface", f"{len(differ.splitlines())} of {len(files)} recordings differ", before.name)


class Recorder:
    """Runs one `vgpu-webhook` and writes its output and responses."""

    def __init__(self, directory: Path, command: Path) -> None:
        self._directory = directory
        self._command = str(command)

    def reviews(self) -> None:
        """`review` of each recorded request and each rule's example, in each form, against three fleets."""
        for fleet in ("mixed", "every-family", None):
            known = [*CONFIG.split(), *(["--fleet", f"{DATA}/fleets/{fleet}.yaml"] if fleet else [])]
            for form in (["-o", "json"], ["-o", "yaml"], ["-o", "patch"], ["-o", "text"], ["--explain"]):
                name = f"review/{fleet or 'no-fleet'}-{form[-1].strip('-')}"
                self._run(name, "review", *known, *form, *REVIEWS)
        for example in EXAMPLES:
            rule = Path(example).stem
            self._run(f"rules/{rule}", "rules", rule)
            self._run(f"rules/{rule}-json", "rules", rule, "-o", "json")

    def oracle(self) -> None:
        """The verdicts of all recorded cases of the scheduler, and the explanation of every eighth."""
        usual = {
            "memoryAboveCard": "deny",
            "target": {"volcano": "1.16.0"},
            "rules": {"several-device-containers": "off"},
        }
        for file in ("cases", "families"):
            for fleet in map(json.loads, (ROOT / DATA / "oracle" / f"{file}.jsonl").read_text().splitlines()):
                pods = [case["pod"] for case in fleet["cases"]]
                known = {"device-config": fleet["deviceConfig"], "policy": usual, "fleet": _listed(fleet["nodes"])}
                with tempfile.TemporaryDirectory() as scratch:
                    for name, document in (known | {"all": _listed(pods), "some": _listed(pods[::8])}).items():
                        Path(scratch, name).write_text(json.dumps(document))
                    options = [f"--{name}={scratch}/{name}" for name in known]
                    for name, chosen, form in (("json", "all", ["-o", "json"]), ("explain", "some", ["--explain"])):
                        self._run(f"oracle/{fleet['id']}-{name}", "review", *options, *form, f"{scratch}/{chosen}")

    def commands(self) -> None:
        """Every other command that exits by itself."""
        for command in COMMANDS.strip().splitlines():
            self._run("commands/" + command.replace("/", "-")[:99], *command.split())

    def server(self) -> None:
        """The responses to the recorded requests, their audit lines and their metrics."""
        address = f"127.0.0.1:{free_port()}"
        with tempfile.TemporaryDirectory() as scratch:
            log = Path(scratch) / "audit.jsonl"
            with self._serving(f"https://{address}/readyz", "serve", "--standalone", "--audit-log", str(log)):
                for path, endpoint in product(REVIEWS, ("mutate", "validate")):
                    answer = _request(f"https://{address}/{endpoint}", (ROOT / path).read_bytes())
                    self._write(f"server/{Path(path).stem}.{endpoint}", answer)
                metrics = _request(f"https://{address}/metrics").splitlines()
            self._write("server/metrics", "\n".join(line for line in metrics if not VOLATILE_METRICS.search(line)))
            self._write("server/audit-lines", log.read_text())

    def console(self) -> None:
        """The API of the console: every operation, and reviews and explanations of the example of every rule."""
        api = f"http://127.0.0.1:{free_port()}/api/v1"
        with self._serving(f"{api}/openapi.json", "console", "--sample", "--audit-log", LOG):
            for path in ("openapi.json", "decisions", "decisions/summary", "decisions/3", "fleet", "rules", "health"):
                self._write(f"console/{path.replace('/', '-')}", _request(f"{api}/{path}"))
            self._write("console/replay", _request(f"{api}/decisions/8/replay?settings=rules.card-count%3Dwarn"))
            for example in EXAMPLES:
                *_, manifest = (ROOT / example).read_text().split("---\n")
                body = json.dumps({"manifest": manifest}).encode()
                self._write(f"console/{Path(example).stem}.review", _request(f"{api}/review", body))

    @contextmanager
    def _serving(self, url: str, *arguments: str) -> Iterator[None]:
        """Run a server at the address of a URL, once that responds."""
        command = [self._command, *arguments, "--bind", url.split("/")[2]]
        process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            until(lambda: _request(url))
            yield
        finally:
            process.terminate()
            process.wait()

    def _run(self, name: str, *arguments: str) -> None:
        result = subprocess.run(
            [self._command, *arguments], cwd=ROOT, capture_output=True, text=True, timeout=300, check=False
        )
        self._write(name, f"{result.stdout}{result.stderr}exit {result.returncode}\n")

    def _write(self, name: str, text: str) -> None:
        path = self._directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        text = "\n".join(map(_indented, text.splitlines()))
        path.write_text(VOLATILE_TEXT.sub("…", VOLATILE_FIELDS.sub(r"\1…", text)) + "\n")


def _listed(items: list[Any]) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "List", "items": items}


def _indented(line: str) -> str:
    """JSON with a line for each value, so that each difference is on its own line; other text unchanged."""
    try:
        return json.dumps(json.loads(line), indent=1, ensure_ascii=False)
    except ValueError:
        return line


def _request(url: str, body: bytes | None = None) -> str:
    """The response; empty if nothing listens yet."""
    request = urllib.request.Request(url, body, {"Content-Type": "application/json"} if body else {})
    context = ssl._create_unverified_context() if url.startswith("https") else None
    try:
        with urllib.request.urlopen(request, context=context) as response:
            return response.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return f"HTTP {error.code}\n{error.read().decode()}"
    except OSError:
        return ""


if __name__ == "__main__":
    main()
