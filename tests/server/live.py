"""`serve --cluster` against an API server of the tests."""

from pathlib import Path
from typing import Any

from tests import strategies
from tests.cluster.apiserver import ApiServer, config_map, config_maps
from tests.server.conftest import Start
from tests.server.program import Program
from tests.server.reviews import admission_response, denying_rules, pod_spec_of, review
from webhook.cluster.pace import Pace
from webhook.names import VGPU_CORES, VGPU_MEMORY, VGPU_NUMBER

# As in production, with shorter delays.
QUICK = Pace(files=0.1, pause=0.1, share=1.0, first_delay=0.05, max_delay=0.3, gone=0.1)
DEVICE_CONFIG = "volcano-vgpu-device-config"
POLICY = "vgpu-webhook-policy"
OWN = "vgpu-webhook"


def gpu_node(name: str, cards: int, number: str = VGPU_NUMBER) -> dict[str, Any]:
    offers = {number: 10, VGPU_NUMBER: 10, VGPU_MEMORY: 16384, VGPU_CORES: 100}
    text = strategies.register([("NVIDIA-Tesla T4", 16384)] * cards, prefix=f"GPU-{name}")
    return strategies.node_json(name, text, {key: f"{cards * amount}" for key, amount in offers.items()})


def put_policy(api: ApiServer, text: str) -> None:
    api.put(config_maps(OWN), config_map(POLICY, {"policy.yaml": text}))


def put_device_config(api: ApiServer, text: str, namespace: str = "kube-system") -> None:
    api.put(config_maps(namespace), config_map(DEVICE_CONFIG, {"device-config.yaml": text}))


class Live:
    def __init__(
        self, start: Start, api: ApiServer, kubeconfig: Path, *options: str, pace: Pace = QUICK, **given: Any
    ) -> None:
        cluster = ("--cluster", "--kubeconfig", str(api.kubeconfig(kubeconfig, OWN)), "--audit-log", "")
        self.program: Program = start(*cluster, *options, pace=pace, **given)

    def refused(self, cards: int, number: str = "volcano.sh/vgpu-number") -> list[str]:
        """The rules that refuse a pod with this number of cards."""
        spec = pod_spec_of({number: str(cards)}) | {"schedulerName": "volcano"}
        return denying_rules(admission_response(self.program.post("/validate", review(spec=spec))))

    def page(self) -> str:
        return self.program.readyz()
