"""What the expressions in the API server cost: the conditions of the webhook configurations, and the fallback policies.

The program of tests/bench/cel evaluates them with the API server's own library; `go` builds it. Costs are in units of CEL, of
which the API server allows 1,000,000 for an expression and 2,500,000 for the conditions of an entry.
"""

import json
import shutil
import subprocess
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

from tests.bench.engine import DATA
from tests.deploy.clusters import binding, request
from tests.deploy.test_large_objects import ANNOTATIONS, PLAIN, fewer, with_env, with_mounts
from tests.deploy.test_large_objects import pod as pod_of
from tests.workloads import workload
from webhook.manifests.configurations import DOMAIN, configurations
from webhook.manifests.fallback.policies import admission_policies
from webhook.manifests.match_conditions import MAX_CONTAINERS, MAX_ENTRIES, SPARE
from webhook.pod.workload_kinds import WORKLOAD_KINDS
from webhook.policy.policy import default_policy
from webhook.settings.table import DEVICE_CONFIG

Json = dict[str, Any]

PROGRAM = Path(__file__).parent / "cel"
MOST = 100_000  # units for one expression, whatever is written in the object: a tenth of what the API server allows
CONFIG = DATA / "config" / "device-config.yaml"


@dataclass(frozen=True, slots=True)
class Policy:
    """An entry of a webhook configuration or a fallback policy; its expressions are as tests/bench/cel takes them."""

    name: str
    rules: list[Json]
    expressions: Json

    def reads(self, request: Json) -> bool:
        found = request["resource"]
        resource = "/".join(filter(None, (found["resource"], request.get("subResource"))))
        return any(
            found["group"] in rule["apiGroups"]
            and request["operation"] in rule["operations"]
            and resource in rule["resources"]
            for rule in self.rules
        )


@dataclass(frozen=True, slots=True)
class Figure:
    name: str
    cost: int
    microseconds: float
    error: str


class Evaluator:
    """The program of tests/bench/cel, which runs; `close` ends it."""

    def __init__(self, directory: Path) -> None:
        """Build it into a directory, and start it."""
        path = directory / "cel"
        subprocess.run(["go", "build", "-o", str(path), "."], cwd=PROGRAM, check=True)
        self._process = subprocess.Popen([path], stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def evaluate(self, policies: Iterable[Policy], asked: Json) -> Iterator[Figure]:
        for policy in policies:
            if policy.reads(asked):
                names = [f"condition {one['name']}" for one in policy.expressions["conditions"]]
                answer = self._answer(policy.expressions | {"request": asked})
                for name, one in zip(
                    [*names, "validation"], [*answer["conditions"], *answer["validations"]], strict=False
                ):
                    yield Figure(f"{policy.name}: {name}", one["cost"], one["microseconds"], one["error"])

    def _answer(self, question: Json) -> Json:
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(json.dumps(question).encode() + b"\n")
        self._process.stdin.flush()
        answer: Json = json.loads(self._process.stdout.readline())
        return answer

    def close(self) -> None:
        self._process.communicate()


def report(directory: Path) -> int:
    """Print this part of the table; returns 1 if an expression fails, or costs more than the aim."""
    if shutil.which("go") is None:
        print("expressions in the API server: not measured, there is no `go`\n")
        return 0
    with closing(Evaluator(directory)) as evaluator:
        return _report(evaluator, {"webhook": webhooks(), "fallback": fallback_policies()})


def _report(evaluator: Evaluator, policies: Mapping[str, Sequence[Policy]]) -> int:
    print(f"expressions in the API server, by its own library (aim: at most {MOST:,} units each, and none fails)")
    print(f"  {'an ordinary pod, a Deployment of it, a Volcano Job: each expression':<86}{'units':>8}{'µs CPU':>8}")
    for name, asked in requests(ordinary()):
        for figure in evaluator.evaluate(chain(*policies.values()), asked):
            print(f"  {name:<26}{figure.name:<60}{figure.cost:>8,}{figure.microseconds:>8.0f}")
    print(
        f"  {'all expressions of a request':<52}",
        *(f"{name:>9}{'µs CPU':>8}" for name in policies),
        " the costliest one",
    )
    found: list[tuple[str, Figure]] = []
    for case, pod in {"ordinary": ordinary(), **large()}.items():
        for name, asked in requests(pod):
            figures = [list(evaluator.evaluate(known, asked)) for known in policies.values()]
            sums = [
                f"{sum(one.cost for one in each):>9,}{sum(one.microseconds for one in each):>8.0f}" for each in figures
            ]
            costliest = max(one.cost for one in chain(*figures))
            print(f"  {case:<27}{name:<25}", *sums, f"{costliest:>18,}")
            found += [(f"{case}, {name}", one) for one in chain(*figures)]
    where, worst = max(found, key=lambda one: one[1].cost)
    print(f"  the costliest of all: {worst.cost:,} units, {worst.name} of {where}")
    failed = [(where, one) for where, one in found if one.error]
    for where, one in failed:
        print(f"  FAILED: {one.name} of {where}: {one.error}")
    print()
    return int(worst.cost > MOST or bool(failed))


def webhooks() -> list[Policy]:
    found = configurations(DEVICE_CONFIG.load(CONFIG), default_policy())
    return [
        Policy(
            f"{configuration['kind'].removesuffix('WebhookConfiguration')} {entry['name'].removesuffix(f'.{DOMAIN}')}",
            entry["rules"],
            {"conditions": entry["matchConditions"]},
        )
        for configuration in found
        for entry in configuration["webhooks"]
    ]


def fallback_policies() -> list[Policy]:
    found = admission_policies(DEVICE_CONFIG.load(CONFIG), default_policy())
    return [
        Policy(
            document["metadata"]["name"],
            document["spec"]["matchConstraints"]["resourceRules"],
            {
                "conditions": document["spec"]["matchConditions"],
                "variables": document["spec"]["variables"],
                "validations": document["spec"]["validations"],
            },
        )
        for document in found
        if document["kind"] == "ValidatingAdmissionPolicy"
    ]


def requests(pod: Json) -> Iterator[tuple[str, Json]]:
    """What becomes of a pod in the API server, and of workloads with its template."""
    changed = annotated(pod, {**pod["metadata"]["annotations"], "changed": "1"})
    running = pod | {"status": {"phase": "Running"}}
    yield "pod, create", request(pod)
    yield "pod, status", request(running, "UPDATE", oldObject=pod, subResource="status")
    yield "pod, update", request(changed, "UPDATE", oldObject=pod)
    yield "pod, annotations removed", request(annotated(pod, {}), "UPDATE", oldObject=pod)
    yield "pod, binding", binding(pod["metadata"]["annotations"])
    template = {"metadata": {"annotations": pod["metadata"]["annotations"]}, "spec": pod["spec"]}
    for key, templates in ((("apps", "Deployment"), 1), (("batch.volcano.sh", "Job"), pod.get("tasks", 1))):
        made = workload(WORKLOAD_KINDS[key], [template] * templates, namespace="default")
        changed = made | {"spec": made["spec"] | {"paused": True}}
        yield f"{key[1]}, create", request(made)
        yield f"{key[1]}, update", request(changed, "UPDATE", oldObject=made)


def ordinary() -> Json:
    """A pod as a service has it: two containers with some variables, mounts and resources."""
    return pod_of(_container(), _container(name="proxy"), annotations={f"example.org/{name}": "x" for name in range(5)})


def large() -> dict[str, Json]:
    """Pods as large as their author can make them, and as large as expressions still look into."""
    one, many = (MAX_ENTRIES // (number + SPARE) for number in (1, MAX_CONTAINERS))
    full = [_container(_names(many), many, many, name=f"c{index}") for index in range(2 * MAX_CONTAINERS)]
    most = fewer(ANNOTATIONS)
    legacy = [{"name": "CUDA_VERSION", "value": "12"}] * (one - 1)
    legacy.append({"name": "NVIDIA_VISIBLE_DEVICES", "value": "none"})
    return {
        "at the limits, 1 container": pod_of(_container(_names(one), one, one), annotations=most),
        f"at the limits, {MAX_CONTAINERS}": pod_of(*full[:MAX_CONTAINERS], annotations=most),
        "above the limits": pod_of(*full, annotations=ANNOTATIONS),
        "CUDA_VERSION everywhere": pod_of(_container() | {"env": legacy}),
        **{
            f"{size:,} annotations": pod_of(_container(), annotations={f"a{number}": "" for number in range(size)})
            for size in (5_000, 20_000, 38_000)
        },
        "10,000 resource names": pod_of(_container(_names(10_000))),
        "20,000 variables": pod_of(_container(env=20_000)),
        "4,000 containers": pod_of(*[PLAIN | {"name": f"c{index}"} for index in range(4_000)]),
        "4,000 tasks": pod_of(PLAIN) | {"tasks": 4_000},
    }


def annotated(pod: Json, annotations: Mapping[str, str]) -> Json:
    return pod | {"metadata": pod["metadata"] | {"annotations": annotations}}


def _names(number: int) -> dict[str, str]:
    return {f"example.org/{name}": "1" for name in range(number)}


def _container(limits: Json | None = None, env: int = 10, mounts: int = 3, name: str = "main") -> Json:
    amounts = limits or {"cpu": "1", "memory": "1Gi"}
    resources = {"limits": amounts, "requests": amounts}
    return with_env(env) | with_mounts(mounts) | {"name": name, "resources": resources}
