"""Some controllers count GPUs by the name of the resource, and miscount vGPUs.

Finds:    vGPUs under a controller that counts GPUs by the name of the resource, without the field that tells their number or
          name
Why:      the trainer starts a process for each MiB, Ray's autoscaler sees no GPU, and KServe refuses the InferenceService.

Sources, of 2026: kubeflow/trainer `pkg/runtime/runtime.go` (numGPU: of names with "gpu", in any order, the first);
ray-project/kuberay `ray-operator/controllers/ray/utils/resources.go` (IsGPUResourceKey: names that end in "gpu"), which Ray's
autoscaler reads in the same way; kserve `pkg/apis/serving/v1beta1/inference_service_validation.go` (HasUnknownGpuResourceType,
where there is a workerSpec).
"""

import re
from collections.abc import Callable, Iterator, Mapping

from webhook.lenient import at, obj
from webhook.rules.api import Context, Finding, Findings, ReviewedPod, Workload, names, warn, wording

GPU = "gpu"
TRAINER = (
    '{who} has no numProcPerNode: Kubeflow\'s trainer takes the amount of any resource with "gpu" in its name, also {others}; '
    "set spec.trainer.numProcPerNode: {number}"
)
RAY = (
    'Ray\'s autoscaler counts resources whose names end in "gpu", so it sees no GPU in {group}; set {field}: "{number}"'
)
KSERVE = "KServe refuses names of GPUs that it does not have beside a workerSpec; set the annotation {key}: '[\"{resource}\"]'"

READ = (
    *(f"workload.{field}" for field in ("numProcPerNode", "rayStartParams", "num-gpus", "workerSpec")),
    f"workload.metadata.annotations[{names.KSERVE_GPU_TYPES}]",
)
_RAY_GROUP = re.compile(r"(spec(?:\.\w+)*?)\.(headGroupSpec|workerGroupSpecs\[(\d+)\])\.template")


@warn(reads=READ)
def check(workload: Workload, _context: Context) -> Findings:
    """Find the field that the kind's controller needs."""
    by_name = _CONTROLLERS.get(workload.group)
    if by_name is None:
        return ()
    counted = [(path, pod, sum([request.number or 0 for request in pod.slices])) for path, pod in workload.pods.items()]
    return dict.fromkeys(
        [one for path, pod, number in counted if number for one in by_name(workload, path, pod, number)]
    )


def _trainer(workload: Workload, path: str, pod: ReviewedPod, number: int) -> Iterator[Finding]:
    counted = {amount.resource for amount in pod.amounts if GPU in amount.resource.lower()}
    others = sorted(counted - {pod.config.vgpu.number_name})
    counts = at(workload.raw, "spec", "trainer", "numProcPerNode") in (None, "auto")
    if workload.kind == "TrainJob" and others and counts:
        yield Finding(path, TRAINER.format(who=workload.who, others=" and ".join(others), number=number))


def _ray(workload: Workload, path: str, pod: ReviewedPod, number: int) -> Iterator[Finding]:
    place = _RAY_GROUP.fullmatch(path)
    if place is None or pod.config.vgpu.number_name.endswith(GPU):
        return
    cluster = obj(workload.raw, *place[1].split("."))
    workers = cluster.get("workerGroupSpecs")
    group = cluster.get("headGroupSpec")
    if place[3] is not None:
        group = workers[int(place[3])] if isinstance(workers, list) else None
    if cluster.get("enableInTreeAutoscaling") is True and at(group, "rayStartParams", "num-gpus") is None:
        where = f"{place[1]}.{place[2]}"
        yield Finding(where, RAY.format(group=place[2], field=f"{where}.rayStartParams.num-gpus", number=number))


def _kserve(workload: Workload, path: str, pod: ReviewedPod, _number: int) -> Iterator[Finding]:
    worker = at(workload.raw, "spec", "predictor", "workerSpec")
    name = pod.config.vgpu.number_name
    named = name in str(workload.annotations.get(names.KSERVE_GPU_TYPES))
    if worker is not None and path.startswith("spec.predictor") and not named:
        yield Finding(
            wording.annotation_path(names.KSERVE_GPU_TYPES), KSERVE.format(key=names.KSERVE_GPU_TYPES, resource=name)
        )


# By the API groups of the workloads; a pod with vGPUs, its template's path, and their number.
_CONTROLLERS: Mapping[str, Callable[[Workload, str, ReviewedPod, int], Iterator[Finding]]] = {
    "trainer.kubeflow.org": _trainer,
    "ray.io": _ray,
    "serving.kserve.io": _kserve,
}
