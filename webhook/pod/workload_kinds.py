"""The kinds of workloads that the webhook reviews, and where each keeps its pod templates.

Everything that lists kinds follows this table: the review, the webhook configurations, `scan`, the documentation. The policy's
`workloadKinds` add to it.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType

from webhook import names

VCJOB_GROUP = "batch.volcano.sh"
POD_GROUP = names.QUEUE_API.partition("/")[0], names.POD_GROUP  # it has no pod templates, but its pods' queue
JOB = "batch", "Job"
VCJOB = VCJOB_GROUP, "Job"
KUBERNETES_GROUPS = frozenset({"", "apps", "batch"})  # of the workloads of Kubernetes itself
MAX_LISTS = 2  # lists and maps in one path


class Form(StrEnum):
    """What the end of a template path holds. `webhook/pod/templates.py` reads each form."""

    POD_TEMPLATE = "pod template"  # metadata and spec, as in a Deployment
    VOLCANO_JOB = "Volcano Job"  # the spec of a Volcano Job, with a pod template in each task
    WORKFLOW = "workflow"  # the spec of an Argo Workflow, whose steps hold containers
    POD_SPEC = "pod spec"  # the fields of a pod's spec, to which a controller adds others
    SPARK_POD = "Spark pod"  # a driver or an executor
    TRAINER = "trainer"  # the resources of a TrainJob's nodes


_TEMPLATES_IN = {Form.VOLCANO_JOB: ".tasks[*].template", Form.WORKFLOW: ".templates[*]"}


@dataclass(frozen=True, slots=True)
class TemplatePath:
    """Where an object keeps pod templates.

    Attributes:
        path: from the object: `spec.workerGroupSpecs[*].template`. `[*]` means each item of a list, a step `*` each value
            of a map.
        form: what is there.
    """

    path: str
    form: Form = Form.POD_TEMPLATE

    @property
    def steps(self) -> tuple[str, ...]:
        """The steps of the path: `("spec", "workerGroupSpecs[*]", "template")`."""
        return tuple(self.path.split("."))

    @property
    def templates(self) -> str:
        """The path of the pod templates themselves, where the form holds several."""
        return self.path + _TEMPLATES_IN.get(self.form, "")


@dataclass(frozen=True, slots=True)
class WorkloadKind:
    """A kind of workload.

    Attributes:
        group, kind: of its objects.
        versions: of its group that serve it; a cluster has at least one of them.
        plural: its name in the API: `deployments`.
        templates: where its pod templates are.
    """

    group: str
    kind: str
    versions: tuple[str, ...]
    plural: str
    templates: tuple[TemplatePath, ...]

    @property
    def key(self) -> tuple[str, str]:
        return self.group, self.kind

    @property
    def is_whole(self) -> bool:
        """Whether the objects describe their pods in full; else a controller adds to them."""
        return all(template.form in (Form.POD_TEMPLATE, Form.VOLCANO_JOB) for template in self.templates)


WorkloadKinds = Mapping[tuple[str, str], WorkloadKind]


def workload_kind(
    group: str, kind: str, versions: str, *templates: str | TemplatePath, plural: str = ""
) -> WorkloadKind:
    """A row of the table; a text is the path of a pod template. The plural is the usual one unless it is given."""
    paths = [TemplatePath(each) if isinstance(each, str) else each for each in templates]
    return WorkloadKind(group, kind, tuple(versions.split()), plural or _plural(kind), tuple(paths))


def _plural(kind: str) -> str:
    """The plural that Kubernetes guesses of a kind."""
    name = kind.lower()
    if name.endswith("s"):
        return f"{name}es"
    return f"{name[:-1]}ies" if name.endswith("y") else f"{name}s"


def _ray_cluster(path: str) -> tuple[str, str]:
    return f"{path}.headGroupSpec.template", f"{path}.workerGroupSpecs[*].template"


def _spark(path: str) -> tuple[TemplatePath, TemplatePath]:
    return TemplatePath(f"{path}.driver", Form.SPARK_POD), TemplatePath(f"{path}.executor", Form.SPARK_POD)


def _pod_specs(*paths: str) -> tuple[TemplatePath, ...]:
    return tuple(TemplatePath(path, Form.POD_SPEC) for path in paths)


_TEMPLATE = "spec.template"
_JOB = TemplatePath("spec", Form.VOLCANO_JOB)
_WORKFLOW = TemplatePath("spec", Form.WORKFLOW)
_REPLICATED = "spec.replicatedJobs[*].template.spec.template"

_ROWS = (
    workload_kind("", "PodTemplate", "v1", "template"),
    workload_kind("", "ReplicationController", "v1", _TEMPLATE),
    workload_kind("apps", "DaemonSet", "v1", _TEMPLATE),
    workload_kind("apps", "Deployment", "v1", _TEMPLATE),
    workload_kind("apps", "ReplicaSet", "v1", _TEMPLATE),
    workload_kind("apps", "StatefulSet", "v1", _TEMPLATE),
    workload_kind("batch", "CronJob", "v1", "spec.jobTemplate.spec.template"),
    workload_kind("batch", "Job", "v1", _TEMPLATE),
    # Volcano. A JobFlow only names JobTemplates.
    workload_kind(VCJOB_GROUP, "CronJob", "v1alpha1", TemplatePath("spec.jobTemplate.spec", Form.VOLCANO_JOB)),
    workload_kind(VCJOB_GROUP, "Job", "v1alpha1", _JOB),
    workload_kind("flow.volcano.sh", "JobTemplate", "v1alpha1", _JOB),
    # Argo
    workload_kind("argoproj.io", "ClusterWorkflowTemplate", "v1alpha1", _WORKFLOW),
    workload_kind("argoproj.io", "CronWorkflow", "v1alpha1", TemplatePath("spec.workflowSpec", Form.WORKFLOW)),
    workload_kind("argoproj.io", "Rollout", "v1alpha1", _TEMPLATE),
    workload_kind("argoproj.io", "Workflow", "v1alpha1", _WORKFLOW),
    workload_kind("argoproj.io", "WorkflowTemplate", "v1alpha1", _WORKFLOW),
    # Kubernetes SIGs
    workload_kind("jobset.x-k8s.io", "JobSet", "v1alpha2", _REPLICATED),
    workload_kind(
        "leaderworkerset.x-k8s.io",
        "LeaderWorkerSet",
        "v1",
        "spec.leaderWorkerTemplate.leaderTemplate",
        "spec.leaderWorkerTemplate.workerTemplate",
    ),
    # Kubeflow. MPIJob has one version of the training operator and one of the MPI operator.
    workload_kind("kubeflow.org", "JAXJob", "v1", "spec.jaxReplicaSpecs.*.template"),
    workload_kind("kubeflow.org", "MPIJob", "v1 v2beta1", "spec.mpiReplicaSpecs.*.template"),
    workload_kind("kubeflow.org", "Notebook", "v1", _TEMPLATE),
    workload_kind("kubeflow.org", "PaddleJob", "v1", "spec.paddleReplicaSpecs.*.template"),
    workload_kind("kubeflow.org", "PyTorchJob", "v1", "spec.pytorchReplicaSpecs.*.template"),
    workload_kind("kubeflow.org", "TFJob", "v1", "spec.tfReplicaSpecs.*.template"),
    workload_kind("kubeflow.org", "XGBoostJob", "v1", "spec.xgbReplicaSpecs.*.template"),
    workload_kind("sparkoperator.k8s.io", "ScheduledSparkApplication", "v1beta2", *_spark("spec.template")),
    workload_kind("sparkoperator.k8s.io", "SparkApplication", "v1beta2", *_spark("spec")),
    workload_kind("trainer.kubeflow.org", "ClusterTrainingRuntime", "v1alpha1", f"spec.template.{_REPLICATED}"),
    workload_kind("trainer.kubeflow.org", "TrainJob", "v1alpha1", TemplatePath("spec.trainer", Form.TRAINER)),
    workload_kind("trainer.kubeflow.org", "TrainingRuntime", "v1alpha1", f"spec.template.{_REPLICATED}"),
    # Ray
    workload_kind("ray.io", "RayCluster", "v1", *_ray_cluster("spec")),
    workload_kind(
        "ray.io",
        "RayCronJob",
        "v1",
        *_ray_cluster("spec.jobTemplate.rayClusterSpec"),
        "spec.jobTemplate.submitterPodTemplate",
    ),
    workload_kind("ray.io", "RayJob", "v1", *_ray_cluster("spec.rayClusterSpec"), "spec.submitterPodTemplate"),
    workload_kind("ray.io", "RayService", "v1", *_ray_cluster("spec.rayClusterConfig")),
    # Serving
    workload_kind(
        "serving.kserve.io",
        "InferenceService",
        "v1beta1",
        *_pod_specs("spec.predictor", "spec.predictor.workerSpec", "spec.transformer", "spec.explainer"),
    ),
    workload_kind(
        "serving.kserve.io",
        "LLMInferenceService",
        "v1alpha1 v1alpha2",
        *_pod_specs("spec.template", "spec.worker", "spec.prefill.template", "spec.prefill.worker"),
    ),
    workload_kind("serving.knative.dev", "Service", "v1", _TEMPLATE),
)


POD = workload_kind("", "Pod", "v1")


def with_kinds(more: Iterable[WorkloadKind], kinds: WorkloadKinds | None = None) -> WorkloadKinds:
    """The table with other kinds; one that it has already is replaced."""
    known = {} if kinds is None else dict(kinds)
    return MappingProxyType(known | {kind.key: kind for kind in more})


WORKLOAD_KINDS = with_kinds(_ROWS)
