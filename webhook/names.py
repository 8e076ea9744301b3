"""Every label, annotation, resource and object name that the project uses, once each.

Sources: volcano `pkg/scheduler/api/devices`, volcano-vgpu-device-plugin and HAMi.
"""

# --- namespaces ------------------------------------------------------------------------------------------------------

# Matched by the label that the API server sets on every namespace and that users cannot change. The cluster's own pods must
# start while the webhook does not answer.
EXEMPT_NAMESPACES = ("kube-system",)
NAMESPACE_NAME = "kubernetes.io/metadata.name"  # the label that every namespace has

# --- vGPU resources: the defaults; the device config may rename them ------------------------------------------------

VGPU_NUMBER = "volcano.sh/vgpu-number"
VGPU_MEMORY = "volcano.sh/vgpu-memory"
VGPU_CORES = "volcano.sh/vgpu-cores"
VGPU_MEMORY_PERCENTAGE = "volcano.sh/vgpu-memory-percentage"

# --- other device resources -----------------------------------------------------------------------------------------

GPUSHARE_NUMBER = "volcano.sh/gpu-number"
GPUSHARE_MEMORY = "volcano.sh/gpu-memory"
NATIVE_RESOURCES = frozenset({"cpu", "memory", "ephemeral-storage"})  # Kubernetes' own
NVIDIA_GPU = "nvidia.com/gpu"
GPUSHARE_NAMES = "volcano.sh/gpu-…"  # both, for people
CCE_MEMORY = "volcano.sh/gpu-mem.128Mi"  # of Huawei CCE's own scheduler
CCE_CORES = "volcano.sh/gpu-core.percentage"
CCE_NUMBER = "volcano.sh/gpu-num"  # a label
NPU_CORE = "huawei.com/npu-core"  # MindCluster
ASCEND_PREFIX = "huawei.com/Ascend"  # of every NPU of the usual device configs, and of its annotation

# What the families' names begin with. A name of this kind that no family has is most likely misspelt.
VOLCANO_DOMAIN = "volcano.sh/"
RESOURCE_PREFIXES = (VOLCANO_DOMAIN, ASCEND_PREFIX, "huawei.com/ascend", "huawei.com/npu-")

# What the names of other device plugins for GPUs and NPUs begin with. The webhook does not judge them.
OTHER_VENDORS = {  # whose cards are no vGPUs
    "amd.com/gpu": "AMD",
    "gpu.intel.com/": "Intel",
    "aws.amazon.com/neuron": "AWS",
    "google.com/tpu": "Google",
    "habana.ai/": "Habana",
    "birentech.com/": "Biren",
    "cambricon.com/": "Cambricon",
    "enflame.com/": "Enflame",
    "hygon.com/": "Hygon",
    "iluvatar.ai/": "Iluvatar",
    "kunlunxin.com/": "Kunlunxin",
    "metax-tech.com/": "MetaX",
    "mthreads.com/": "Moore Threads",
    "vastaitech.com/": "Vastai",
}
OTHER_DEVICES = (
    "nvidia.com/",
    "alpha.kubernetes.io/nvidia-gpu",  # which no node has offered since Kubernetes 1.11
    "volcano.io/",
    "aliyun.com/gpu-",
    "tencent.com/vcuda-",
    "tke.cloud.tencent.com/qgpu-",
    "koordinator.sh/gpu",
    *OTHER_VENDORS,
)

# These belong to Huawei's own device plugin, which Volcano's vNPU sharing does not need.
HUAWEI_PLUGIN_NAMES = frozenset(
    f"huawei.com/Ascend{model}" for model in ("310", "310P", "310P-IPro", "310P-V", "310P-VPro", "910")
)

# --- annotations that a pod's author may set ------------------------------------------------------------------------

VGPU_MODE = "volcano.sh/vgpu-mode"
GPU_PRODUCT = "nvidia.com/gpu.product"  # a label that NVIDIA's GPU feature discovery gives nodes
USE_GPUTYPE = "nvidia.com/use-gputype"
NOUSE_GPUTYPE = "nvidia.com/nouse-gputype"
USE_GPUUUID = "volcano.sh/vgpu-use-gpuuuid"
NOUSE_GPUUUID = "volcano.sh/vgpu-nouse-gpuuuid"

VNPU_MODE = "huawei.com/vnpu-mode"

AUTHOR_ANNOTATIONS = frozenset({VGPU_MODE, USE_GPUTYPE, NOUSE_GPUTYPE, USE_GPUUUID, NOUSE_GPUUUID})

# --- annotations of gangs and queues ----------------------------------------------------------------------------------

TASK_PRIORITY = "volcano.sh/task-priority"
GROUP_MIN_MEMBER = "scheduling.volcano.sh/group-min-member"  # of a workload, not of its pods
# A gate, and the annotation with which a pod asks for it: Volcano's webhook adds the gate, its scheduler removes it.
QUEUE_GATE = "scheduling.volcano.sh/queue-allocation-gate"
GROUP_NAME = "scheduling.k8s.io/group-name"  # of a pod: its PodGroup
QUEUE_NAME = "scheduling.volcano.sh/queue-name"  # of a pod
KSERVE_GPU_TYPES = "serving.kserve.io/gpu-resource-types"  # of an InferenceService: the names of GPUs that it allows
# Of a queue: what its pods may have on the nodes of each node group.
GROUP_LIMITS = "volcano.sh/nodegroup-resource-limits"
QUEUE_API = "scheduling.volcano.sh/v1beta1"  # of Queues and PodGroups
DEVICE_CLASS_API = "resource.k8s.io/v1"  # since Kubernetes 1.34; DeviceClasses serve resources only from there on
POD_GROUP = "PodGroup"  # the kind by which the scheduler finds the queue of every pod
TASK = "volcano.sh/task-spec"  # of a pod: its task of the Volcano Job, and of spec.minTaskMember of its PodGroup
JOB_NAME = "volcano.sh/job-name"  # of a pod: the Volcano Job that it belongs to
JOB_QUEUE_NAME = "volcano.sh/queue-name"  # what Volcano's job controller writes on pods; it reads it nowhere
PODGROUP_POLICY = "volcano.sh/vgpu-podgroup-policy"
PODGROUP_SPREAD = "spread"

CHOOSING_ANNOTATIONS = AUTHOR_ANNOTATIONS | {PODGROUP_POLICY, VNPU_MODE}  # by which a pod chooses its cards

# --- annotations of Kubernetes ----------------------------------------------------------------------------------------

LIMIT_RANGER = "kubernetes.io/limit-ranger"  # what the API server has set by the default of a LimitRange
MIRROR = "kubernetes.io/config.mirror"  # on the API server's copy of a static pod
KUBELETS = "system:nodes"  # the group of their users
SERVICE_ACCOUNT = "system:serviceaccount:"  # before NAMESPACE:NAME: the user name of a service account
BINDING = "Binding"  # the kind by which a scheduler gives a pod its node; the pod gets its annotations

# --- annotations that only the scheduler and the device plugins write -----------------------------------------------

VGPU_NODE = "volcano.sh/vgpu-node"  # the node that the scheduler chose
VGPU_IDS = "volcano.sh/vgpu-ids-new"  # the slices that it assigned; never erased
BIND_PHASE = "volcano.sh/bind-phase"  # ALLOCATING until the device plugin gave a container what the scheduler assigned
ALLOCATING = "allocating"
GPU_INDEX = "volcano.sh/gpu-index"  # gpushare: the cards
HAMI_NODE = "hami.io/vgpu-node"  # Ascend: the node

RESERVED_ANNOTATIONS = frozenset(
    {
        VGPU_NODE,
        "volcano.sh/vgpu-time",
        VGPU_IDS,
        "volcano.sh/vgpu-pod-name",
        "volcano.sh/vgpu-pod-namespace",
        "volcano.sh/vgpu-pod-uid",
        "volcano.sh/devices-to-allocate",
        BIND_PHASE,
        "volcano.sh/bind-time",
        "volcano.sh/predicate-time",
        GPU_INDEX,
        "predicate-time",
        NPU_CORE,
    }
)

# Of pods that request Ascend NPUs. HAMi's own scheduler and device plugins write them on their pods, too.
RESERVED_ASCEND_ANNOTATIONS = frozenset({HAMI_NODE, "hami.io/vgpu-time", "hami.io/bind-phase", "hami.io/bind-time"})

# Of any pod: hami.io/<word>-devices-… and huawei.com/<word>, with the chip's common word, which begins with Ascend.
HAMI_PREFIX = "hami.io/"
RESERVED_HAMI_PREFIX = f"{HAMI_PREFIX}Ascend"
HAMI_ALLOCATED_SUFFIX = "-devices-allocated"  # behind hami.io/ and the word: the NPUs that the scheduler assigned
RESERVED_HAMI_SUFFIXES = ("-devices-to-allocate", HAMI_ALLOCATED_SUFFIX)
RESERVED_ASCEND_PREFIX = ASCEND_PREFIX

GPU_UNHEALTHY_IDS = "volcano.sh/gpu-unhealthy-ids"  # of a node; see the rule gpushare-annotation

CDI_PREFIX = "cdi.k8s.io/"
CDI_VENDOR = f".{CDI_PREFIX}"  # behind the name of a vendor: nvidia.cdi.k8s.io/
# What containerd/nri's device injector and NVIDIA's NRI plugin read, alone or followed by /pod or /container.NAME
# (containerd/nri main, plugins/device-injector/device-injector.go; nvidia-container-toolkit main, cmd/nvidia-ctk-installer).
NRI_DEVICES = ("devices.nri.io", "devices.noderesource.dev", "cdi-devices.nri.io", "cdi-devices.noderesource.dev")
CRIO_DEVICES = ("io.kubernetes.cri-o.Devices", "devices.crio.io")  # CRI-O main, pkg/annotations/v2/annotations.go

# --- labels of a MindCluster pod ------------------------------------------------------------------------------------

RING_CONTROLLER = "ring-controller.atlas"
RING_CONTROLLER_310P = "ascend-310P"
VNPU_LEVEL = "vnpu-level"
VNPU_DVPP = "vnpu-dvpp"

MINDCLUSTER_LABELS = frozenset({RING_CONTROLLER, VNPU_LEVEL, VNPU_DVPP})

# --- labels and annotations of pods that other controllers write ----------------------------------------------------

JOBSET = "jobset.sigs.k8s.io/jobset-name"
LEADER_WORKER_SET = "leaderworkerset.sigs.k8s.io/name"
LEADER_WORKER_SET_REPLICA = "leaderworkerset.sigs.k8s.io/group-index"
JOB_INDEX = "batch.kubernetes.io/job-completion-index"  # an annotation of the pods of indexed Jobs

# --- nodes ----------------------------------------------------------------------------------------------------------

NODE_VGPU_REGISTER = "volcano.sh/node-vgpu-register"
NODE_LOCK = "hamivgpu"  # of a node: when a pod began to start there, in RFC 3339
NODE_VGPU_HANDSHAKE = "volcano.sh/node-vgpu-handshake"
NODE_ASCEND_REGISTER_PREFIX = "hami.io/node-register-"  # and the chip's common word
NODE_VNPU_HAMI_CORE = "hami-vnpu-core"
NODE_SERVER_TYPE = "servertype"  # a label: kind of NPU and cores of one chip, `Ascend310P-8`
VGPU_TAINT = "volcano.sh/vgpu"  # a site's convention; the policy may set another
NODE_VGPU_ENABLED = "volcano.sh/vgpu.enabled"  # a label, the same site's convention

# --- sharing modes --------------------------------------------------------------------------------------------------

MODE_HAMI_CORE = "hami-core"
MODE_MIG = "mig"
MODE_MPS = "mps"

# --- schedulers -----------------------------------------------------------------------------------------------------

DEFAULT_SCHEDULER = "default-scheduler"
VOLCANO_SCHEDULER = "volcano"

# --- environment ----------------------------------------------------------------------------------------------------

NVIDIA_VISIBLE_DEVICES = "NVIDIA_VISIBLE_DEVICES"
ASCEND_VISIBLE_DEVICES = "ASCEND_VISIBLE_DEVICES"  # the Ascend runtime mounts a card for each number in it

# The NVIDIA runtime shows every card to a container that sets the first, and neither the second nor NVIDIA_VISIBLE_DEVICES.
CUDA_VERSION = "CUDA_VERSION"
NVIDIA_REQUIRE_CUDA = "NVIDIA_REQUIRE_CUDA"

# A directory below /run: the NVIDIA runtime reads a mount there as a request.
NVIDIA_REQUESTS = "nvidia-container-devices"

# --- metrics --------------------------------------------------------------------------------------------------------

METRIC_PREFIX = "vgpu_webhook_"

# --- the webhook's own objects, as they are installed by default ----------------------------------------------------

WEBHOOK = "vgpu-webhook"  # the Service, its namespace, and the webhook configurations
TLS_SECRET = f"{WEBHOOK}-tls"  # for the pods
CA_SECRET = f"{WEBHOOK}-ca"  # with the keys of the CAs

# --- the ConfigMaps of the device config and of the policy ----------------------------------------------------------

DEVICE_CONFIG_MAP = "volcano-vgpu-device-config"
DEVICE_CONFIG_KEY = "device-config.yaml"
SCHEDULER_CONF_MAP = "volcano-scheduler-configmap"
SCHEDULER_CONF_KEY = "volcano-scheduler.conf"
POLICY_MAP = f"{WEBHOOK}-policy"
EVENTS_LEASE = f"{WEBHOOK}-events"  # of the console that writes Events
POLICY_KEY = "policy.yaml"
RULES_ANNOTATION = "rules.vgpu-webhook/"  # of a webhook configuration; the name of an entry follows

# Never stored: creating it in a dry run tests whether the API server calls the webhook.
PROBE_MAP = f"{WEBHOOK}-probe"
