"""Requests for each page: together they use each parameter."""

from webhook.settings.sources import SAMPLES

MANIFEST = (SAMPLES / "pod-refused.yaml").read_text()

REQUESTS = {
    "waiting": [{}],
    "why": [{"namespace": "team-c", "pod": "finetune-0"}, {"namespace": "team", "manifest": MANIFEST}],
}
