"""The limits that the documentation states are those of the code."""

import pytest

from tests.docs.generated import DOCS
from webhook.audit import writer
from webhook.manifests.configurations import TIMEOUT_SECONDS
from webhook.pod.size import MAX_CONTAINERS, MAX_ENTRIES, MAX_LOOKS, MAX_TEMPLATES
from webhook.server.admission import MAX_WAITING, MAX_WAITING_BEYOND, MAX_WAITING_SHARE
from webhook.server.framing import HEAD_BYTES, MAX_BODY
from webhook.server.limits import LIMITS
from webhook.wire.codec import MAX_BYTES_IN_DOUBT, MAX_STRUCTURAL_CHARS, MAX_STRUCTURAL_CHARS_IN_DOUBT

STATED = [
    ("operations", f"| request body | {MAX_BODY >> 20} MiB |"),
    (
        "operations",
        f"an API server spells JSON | {MAX_BYTES_IN_DOUBT >> 20} MiB, {MAX_STRUCTURAL_CHARS_IN_DOUBT:,} commas |",
    ),
    ("operations", f"| request head | {HEAD_BYTES >> 10} KiB |"),
    ("operations", f"| containers of a pod | {MAX_CONTAINERS:,} |"),
    ("operations", f"| environment variables, mounts and similar entries of a pod | {MAX_ENTRIES:,} |"),
    ("operations", f"| commas, colons and brackets of a pod, without `managedFields` | {MAX_STRUCTURAL_CHARS:,} |"),
    ("operations", f"| pod templates of a workload | {MAX_TEMPLATES} |"),
    ("operations", f"times the kinds of vGPU nodes | {MAX_LOOKS:,} |"),
    (
        "operations",
        f"| large bodies that wait for a review | {MAX_WAITING}, at most {MAX_WAITING_SHARE + MAX_WAITING_BEYOND} of them",
    ),
    ("operations", f"| memory for connections: handshakes, bodies, unread answers | {LIMITS.memory_bytes >> 20} MiB |"),
    ("operations", f"| an audit line | {writer.MAX_LINE >> 10} KiB |"),
    ("audit", f"A line has at most {writer.MAX_LINE >> 10} KiB"),
    ("audit", f"before it grows beyond {writer.MAX_BYTES >> 20} MiB (`--audit-max-bytes`)"),
    ("troubleshooting", f"no answer within {TIMEOUT_SECONDS} s"),
]


@pytest.mark.parametrize("page,text", STATED, ids=[text for _, text in STATED])
def test_a_stated_limit_is_that_of_the_code(page: str, text: str):
    assert text
    assert text in " ".join((DOCS / f"{page}.md").read_text().split())
