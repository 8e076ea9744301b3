"""The few things that are asked of the API server, each with a time limit and with errors that say what to do.

Objects stay the JSON that they came in: what this program does not know goes back unchanged.
"""

import json
from collections.abc import Callable, Mapping
from datetime import datetime
from email.utils import parsedate_to_datetime
from os import environ
from pathlib import Path
from typing import Any

import yaml
from kubernetes.client import AdmissionregistrationV1Api, ApiClient, ApiException, Configuration, CoreV1Api
from kubernetes.config import ConfigException, load_incluster_config, load_kube_config
from urllib3.exceptions import HTTPError

from certs.errors import Absent, Again, CertsError, Conflict, Uncalled

FIELD_MANAGER = "vgpu-webhook-certs"
MUTATING, VALIDATING = "MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"
PROBE = "vgpu-webhook-probe"  # a ConfigMap that is never stored; the webhook answers for it with a warning
RIGHTS = "`python -m certs --help` lists the rights that are needed"

NAMESPACE_FILE = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")

Object = dict[str, Any]

_ODD = (ConfigException, yaml.YAMLError, OSError, ValueError, TypeError, LookupError, AttributeError)


class Api:
    """A connection to the API server.

    Attributes:
        clock: the server's, as its last answer had it; None before the first.
    """

    def __init__(self, kubeconfig: Path | None, seconds: float) -> None:
        """Read the credentials; nothing is sent yet.

        Args:
            kubeconfig: None stands for the service account in a pod, and elsewhere for the file that kubectl takes.
            seconds: the limit for each call.

        Raises:
            CertsError: there are no credentials, or they cannot be read.
        """
        configuration = _credentials(kubeconfig)
        configuration.retries = False  # who calls us looks again before it tries again
        client = ApiClient(configuration)
        client.user_agent = FIELD_MANAGER
        core, admission = CoreV1Api(client), AdmissionregistrationV1Api(client)
        self.clock: datetime | None = None
        self._warnings: list[str] = []
        self._host, self._seconds = configuration.host, seconds
        self._get_secret: Any = core.read_namespaced_secret
        self._create_secret: Any = core.create_namespaced_secret
        self._replace_secret: Any = core.replace_namespaced_secret
        self._get_namespace: Any = core.read_namespace
        self._patch_config_map: Any = core.patch_namespaced_config_map
        self._get_configuration: Mapping[str, Any] = {
            MUTATING: admission.read_mutating_webhook_configuration,
            VALIDATING: admission.read_validating_webhook_configuration,
        }
        self._patch_configuration: Mapping[str, Any] = {
            MUTATING: admission.patch_mutating_webhook_configuration,
            VALIDATING: admission.patch_validating_webhook_configuration,
        }

    def secret(self, namespace: str, name: str) -> Object | None:
        """Get a Secret; None if there is none."""
        try:
            return self._call(f"get {_secret(namespace, name)}", self._get_secret, name, namespace)
        except Absent:
            return None

    def create_secret(self, namespace: str, secret: Object) -> None:
        """Create a Secret; a Conflict if there is one."""
        what = f"create {_secret(namespace, secret['metadata']['name'])}"
        try:
            self._call(what, self._create_secret, namespace, secret, field_manager=FIELD_MANAGER)
        except Absent as error:
            raise CertsError(
                f"namespace {namespace} is not there: apply the manifests first, or name another with --namespace"
            ) from error

    def replace_secret(self, namespace: str, secret: Object) -> None:
        """Update a Secret; a Conflict unless it is still the one that was read."""
        name = secret["metadata"]["name"]
        what = f"update {_secret(namespace, name)}"
        try:
            self._call(what, self._replace_secret, name, namespace, secret, field_manager=FIELD_MANAGER)
        except Absent as error:
            raise Conflict(f"{_secret(namespace, name)} was deleted meanwhile") from error

    def configuration(self, kind: str, name: str) -> Object | None:
        """Get a webhook configuration; None if there is none."""
        try:
            return self._call(f"get {kind} {name}", self._get_configuration[kind], name)
        except Absent:
            return None

    def patch_configuration(self, kind: str, name: str, operations: list[Object]) -> None:
        """Apply a JSON patch to a webhook configuration; a Conflict if one of its tests fails."""
        function = self._patch_configuration[kind]
        try:
            self._call(f"patch {kind} {name}", function, name, operations, field_manager=FIELD_MANAGER)
        except Absent as error:
            raise Conflict(f"{kind} {name} was deleted meanwhile") from error

    def namespace(self, name: str) -> Object:
        """Get a Namespace.

        Raises:
            CertsError: there is none, or it cannot be read.
        """
        return self._call(f"get Namespace {name}", self._get_namespace, name)

    def probe(self, namespace: str) -> None:
        """Have the API server call the webhook: through the Service, trusting nothing but the caBundle.

        Raises:
            Uncalled: it got no answer.
            CertsError: it could not be tried.
        """
        document = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": PROBE}}
        self._call(
            f"apply ConfigMap {namespace}/{PROBE} as a dry run",
            self._patch_config_map,
            PROBE,
            namespace,
            document,
            dry_run="All",
            field_manager=FIELD_MANAGER,
            force=True,
            _content_type="application/apply-patch+yaml",
        )
        if not any(f"{PROBE}: " in warning for warning in self._warnings):
            raise Uncalled(f"it did not call the webhook for ConfigMap {namespace}/{PROBE}: apply the manifests again")

    def _call(self, what: str, function: Callable[..., Any], *arguments: Any, **more: Any) -> Object:
        try:
            response = function(*arguments, **more, _preload_content=False, _request_timeout=self._seconds)
            content, date = response.data, response.headers.get("Date")
            self._warnings = response.headers.getlist("Warning")
        except ApiException as error:
            raise _refusal(what, error) from error
        except (HTTPError, OSError) as error:
            raise Again(
                f"cannot {what}: the API server at {self._host} does not answer: {_short(error)}; "
                "check that it is reachable from here, or give it more time with --timeout"
            ) from error
        try:
            found = json.loads(content)
            self.clock = parsedate_to_datetime(date) if date else None
        except ValueError as error:
            raise CertsError(
                f"cannot {what}: what answers at {self._host} is no API server: {_short(error)}"
            ) from error
        if not isinstance(found, dict):
            raise CertsError(f"cannot {what}: what answers at {self._host} is no API server")
        return found


def own_namespace(kubeconfig: Path | None) -> str | None:
    """The namespace of the pod that this runs in; None elsewhere."""
    if not _in_cluster(kubeconfig):
        return None
    try:
        return NAMESPACE_FILE.read_text().strip()
    except OSError:
        return None


def _in_cluster(kubeconfig: Path | None) -> bool:
    return kubeconfig is None and "KUBERNETES_SERVICE_HOST" in environ


def _secret(namespace: str, name: str) -> str:
    return f"Secret {namespace}/{name}"


def _credentials(kubeconfig: Path | None) -> Configuration:
    configuration = Configuration()
    in_cluster = _in_cluster(kubeconfig)
    try:
        if in_cluster:
            load_incluster_config(client_configuration=configuration)
        else:
            file = str(kubeconfig) if kubeconfig else None
            load_kube_config(file, client_configuration=configuration, persist_config=False)
    except _ODD as error:
        where = "the pod's service account" if in_cluster else kubeconfig or "the default kubeconfig"
        raise CertsError(
            f"no credentials for an API server in {where}: {_short(error)}; name a file with --kubeconfig"
        ) from error
    return configuration


def _refusal(what: str, error: ApiException) -> CertsError:
    """What a status that is no success means."""
    told = _message(error)
    patched = what.startswith("patch")
    match error.status:
        case 401:
            return CertsError(f"cannot {what}: the API server does not accept these credentials; renew them ({told})")
        case 403:
            return CertsError(f"not allowed to {what}: {told}; {RIGHTS}")
        case 404:
            return Absent(f"cannot {what}: {told}")
        case 409:
            return Conflict(f"cannot {what}: somebody else was faster: {told}")
        case 422 if patched:  # what a failed test of a JSON patch gets
            return Conflict(f"cannot {what}: it was changed after it was read: {told}")
        case 500 if "failed calling webhook" in told:
            return Uncalled(told)
        case 429 | 500 | 502 | 503 | 504:
            return Again(f"cannot {what}: the API server says {error.status}: {told}; try again later")
    return CertsError(f"cannot {what}: the API server says {error.status}: {told}")


def _message(error: ApiException) -> str:
    try:
        told = json.loads(error.body or "")["message"]
    except (ValueError, LookupError, TypeError):
        told = error.body or error.reason
    return _short(told)


def _short(told: object) -> str:
    return " ".join(str(told).split())[:300] or type(told).__name__
