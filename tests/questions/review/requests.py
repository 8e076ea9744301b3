"""Requests for each page: together they use each parameter."""

from webhook.settings.sources import SAMPLES

MANIFEST = (SAMPLES / "pod-refused.yaml").read_text()

REQUESTS = {
    "review": [
        {"manifest": MANIFEST},
        {"manifest": MANIFEST, "namespace": "team", "settings": [], "split": 4, "explain": False},
    ],
    "playground": [{}, {"example": "cores-range"}],
}
