"""What holds for any input of `/mutate`, `/validate` and the reader of manifests.

These call what is below the server's catch-all, so that no exception is hidden: only a RequestError may refuse a review, and
only a WebhookError a manifest. The first byte of a review selects the settings.
"""

import base64
import csv
import io
import json
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import cache
from importlib import import_module
from typing import Any
from xml.etree import ElementTree as ET

import jsonpatch
import orjson

from tests.reviewing import ALL_FAMILIES, CONFIG, snapshot
from webhook.audit import writer as audit
from webhook.cli.ci import scanned
from webhook.cli.complaints import Complaints
from webhook.cli.report import WRITERS
from webhook.document_review import Reviewed, review_document
from webhook.errors import ConfigError, RequestError, WebhookError
from webhook.existing_objects import is_scanned, judge, why_left_out
from webhook.inputs.documents import Document, parse_documents
from webhook.inputs.items import ItemStream
from webhook.inputs.parse import parse_stream
from webhook.outcome import MAX_WARNING, Outcome
from webhook.pod.owners import subject_of
from webhook.questions import QUESTIONS
from webhook.rules.choices import ENFORCE
from webhook.server.metrics import Metrics
from webhook.snapshot import Snapshot
from webhook.texts import visible
from webhook.wire import codec
from webhook.wire.models import Request

MAX_BYTES = 32 << 10  # of an input
MAX_SECONDS = 2.0  # of CPU for an input, while the fuzzer counts every branch

METRICS = Metrics()


@cache
def settings() -> list[Snapshot]:
    usual = snapshot(*ALL_FAMILIES)
    copied = replace(CONFIG, vgpu=replace(CONFIG.vgpu, default_memory=2000, default_cores=10, overwrite_env=True))
    return [
        usual,
        snapshot("mixed", percentage={"mixedCards": "deny"}, workloads="deny", toleration=None),
        snapshot("rtx4090", memoryAboveCard="deny", target={"volcano": "1.16.0"}),
        snapshot(),
        snapshot("mixed", enforcement="warn"),
        snapshot("mixed", enforcement="audit"),
        replace(usual, config=copied),
    ]


def timed(target: Callable[[bytes], None]) -> Callable[[bytes], None]:
    """The target, with a limit of CPU time; the best of two runs counts."""

    def run(data: bytes) -> None:
        for last in (False, True):
            began = time.thread_time()
            target(data)
            took = time.thread_time() - began
            if took < MAX_SECONDS:
                return
            assert not last, f"{took:.1f} s of CPU for {len(data)} bytes"

    return run


def _explained(error: WebhookError, begins: str = "") -> None:
    text = str(error)
    assert text.startswith(begins)
    assert len(begins) < len(text) < 2000
    if isinstance(error, RequestError):
        status = json.loads(codec.error_status(error))
        assert 400 <= status["code"] < 500
        assert text in status["message"]


# --- reviews --------------------------------------------------------------------------------------------------------


@timed
def mutate(data: bytes) -> None:
    """The answer has a patch that applies, gives the object that the outcome has, and nothing is left to repair."""
    review, chosen = _chosen(data)
    answered = _answered("/mutate", review, chosen)
    if answered is None:
        return
    request, outcome, response = answered
    patch = []
    if "patch" in response:
        assert response["patchType"] == "JSONPatch"
        patch = json.loads(base64.b64decode(response["patch"], validate=True))
        assert patch, "an empty patch"
    if not outcome.reviewed:
        return
    patched = jsonpatch.apply_patch(request.object, patch)
    assert patched == outcome.object, "the patch gives another object"
    if outcome.enforcement is not ENFORCE:
        return
    again = _review("/mutate", request._replace(object=patched), chosen)
    assert not again.operations, f"a second review changes the pod again: {again.operations}"


@timed
def validate(data: bytes) -> None:
    """A refusal says why."""
    review, chosen = _chosen(data)
    answered = _answered("/validate", review, chosen)
    if answered is None:
        return
    _, outcome, response = answered
    assert "patch" not in response
    if response["allowed"]:
        return
    assert outcome.enforcement is ENFORCE
    status = response["status"]
    assert status["code"] == 403
    assert status["details"]["causes"]
    for cause in status["details"]["causes"]:
        assert cause["reason"]
        assert f"{cause['reason']}: {cause['message']}" in status["message"]


def _chosen(data: bytes) -> tuple[bytes, Snapshot]:
    return data[1:], settings()[(data[0] if data else 0) % len(settings())]


def _review(path: str, request: Request, chosen: Snapshot) -> Outcome:
    from webhook.server.admission import ENDPOINTS

    return ENDPOINTS[path][1](request, chosen)


def _answered(path: str, body: bytes, chosen: Snapshot) -> tuple[Request, Outcome, Any] | None:
    """The review of a body, after what holds for every endpoint; None if it is refused as a bad request."""
    try:
        request = codec.decode(body)
        outcome = _review(path, request, chosen)
    except RequestError as error:
        _explained(error)
        return None
    answer = json.loads(codec.encode(request, outcome.answer()))
    sent = orjson.loads(body)
    assert (answer["kind"], answer["apiVersion"]) == ("AdmissionReview", sent["apiVersion"])
    response = answer["response"]
    assert response["uid"] == sent["request"]["uid"]
    assert isinstance(response["allowed"], bool)
    for warning in response.get("warnings", ()):
        assert 0 < len(warning.encode()) <= MAX_WARNING
        assert visible(warning) == warning, f"a control character in a warning: {warning!r}"
    for value in response.get("auditAnnotations", {}).values():
        assert isinstance(value, str)
    line = audit.line(audit.Exchange(path[1:], 1, False), request, outcome, chosen)
    assert len(line) <= audit.MAX_LINE
    assert line.count(b"\n") == 1
    assert json.loads(line)["allowed"] == response["allowed"]
    METRICS.reviewed(path[1:], request, outcome, 1)
    return request, outcome, response


# --- manifests ------------------------------------------------------------------------------------------------------


@timed
def manifests(data: bytes) -> None:
    """Every report of every document can be read, every place is in the file, and a printed object reads back the same."""
    with suppress(ConfigError):
        for raw in ItemStream(io.BytesIO(data), "stream"):
            _scanned(Document("", raw))
    try:
        documents = parse_documents(data, "fuzz.yaml")
    except ConfigError as error:
        _explained(error, "fuzz.yaml: ")
        return
    lines = len(data.splitlines()) + 1
    reviews: list[Reviewed] = []
    for document in documents:
        _scanned(document)
        try:
            reviewed = review_document(document, settings()[0])
        except WebhookError as error:
            _explained(error)
            continue
        reviews.append(reviewed)
        for found in reviewed.outcome.violations:
            place = document.position(found.path)
            assert place is not None
            assert 1 <= place.line <= lines
            assert place.column >= 1
    _reported(reviews)


def _scanned(document: Document) -> None:
    raw = document.value
    if "scan" not in QUESTIONS or not isinstance(raw, dict) or not isinstance(raw.get("kind"), str):
        return
    chosen, scan = settings()[0], import_module("webhook.questions.scan.tally")
    tally = scan.Tally()
    with suppress(WebhookError):
        subject_of(raw)
        scan.BoundPods(chosen, []).add(document)
        if why_left_out(raw, chosen) or not is_scanned(raw, chosen.policy.workload_kinds):
            return
        if judged := judge(raw, chosen):
            tally.add(judged, document)
    stream = io.StringIO()
    page = WRITERS["html"](stream)
    for one in scanned(tally.rows()):
        assert all(found.message for _, found in one.findings)
        page.add(one)
    page.finish(Complaints())
    assert stream.getvalue().replace("\n", "").isprintable()


def _reported(reviews: list[Reviewed]) -> None:
    if "review" not in QUESTIONS:
        return
    texts: dict[str, str] = {}
    for name, make in import_module("webhook.questions.review.text").FORMATS.items():
        stream = io.StringIO()
        report = make(stream)
        for reviewed in reviews:
            report.add(reviewed, None)
        report.finish(Complaints())
        texts[name] = stream.getvalue()
        texts[name].encode()
    for name in ("json", "patch"):
        assert len([json.loads(line) for line in texts[name].splitlines()]) == len(reviews)
    json.loads(texts["sarif"])
    ET.fromstring(texts["junit"])
    assert all(line.startswith("::") for line in texts["github"].split("\n")[:-1])
    cells = [cell for row in csv.reader(io.StringIO(texts["csv"])) for cell in row]
    assert not [cell for cell in cells if cell.startswith(("=", "+", "-", "@", "\t", "\r"))]
    kept = [each.outcome.object for each in reviews if each.outcome.allowed and each.outcome.object]
    assert parse_stream(texts["yaml"].encode(), "printed") == [json.loads(orjson.dumps(each)) for each in kept]


TARGETS: dict[str, Callable[[bytes], None]] = {"mutate": mutate, "validate": validate, "manifests": manifests}
