"""Three pods sent to a webhook as an API server would, and what their users would see."""

import base64
import http.client
import ssl
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jsonpatch
import orjson

from webhook.cluster.documents import parse_documents
from webhook.cluster.files import SAMPLES, read_bytes
from webhook.report.manifest import difference
from webhook.report.terminal import INDENT, Style, Terminal

PODS = ("pod-repaired.yaml", "pod-warned.yaml", "pod-refused.yaml")
MAX_SAMPLE = 1 << 16  # bytes


@dataclass(frozen=True, slots=True)
class Webhook:
    """A webhook on this machine.

    Attributes:
        port: where it listens.
        ca: who signed its certificate, a PEM file.
    """

    port: int
    ca: Path

    def get(self, path: str) -> bytes:
        """What it answers to a GET.

        Raises:
            OSError: it does not answer.
        """
        return self._exchange("GET", path, None)

    def review(self, path: str, pod: dict[str, Any]) -> dict[str, Any]:
        """What it answers to the creation of a pod, at `/mutate` or `/validate`."""
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
    """Sends the pods, and tells what comes back."""

    webhook: Webhook
    terminal: Terminal

    def run(self) -> None:
        """Send one pod after the other."""
        self.terminal.line("It has made its own certificate and knows the fleet of webhook/samples/fleet.yaml.")
        for number, name in enumerate(PODS, start=1):
            text = read_bytes(SAMPLES / name, MAX_SAMPLE)
            comment = text.decode().splitlines()[0].removeprefix("# ")
            (pod,) = parse_documents(text, name)
            self.terminal.line()
            self.terminal.line((Style.BOLD, f"{number}  webhook/samples/{name}"))
            self.terminal.paragraph(INDENT, (), comment)
            self._send(name, pod)

    def _send(self, name: str, pod: dict[str, Any]) -> None:
        """Mutate, then validate the result, as the API server does; tell what its user would see."""
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
                INDENT, (Style.GOOD, f"pod/{pod['metadata']['name']} created"), " (would be: nothing is stored here)"
            )
            return
        self.terminal.line(INDENT, (Style.REFUSED, "Error from server (Forbidden): "), f"error when creating {name!r}:")
        for line in judged["status"]["message"].splitlines():
            rule, _, sentence = line.partition(": ")
            head = ((Style.BOLD, f"{rule}: "),) if sentence else ()
            self.terminal.paragraph(INDENT * 2, head, sentence or line)
