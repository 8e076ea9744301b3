"""Where the API server is, and what to show it: a service account, or a kubeconfig."""

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from kubernetes.client import Configuration
from kubernetes.config import ConfigException, list_kube_config_contexts, load_kube_config
from kubernetes.config.incluster_config import SERVICE_HOST_ENV_NAME, InClusterConfigLoader

from webhook import names
from webhook.errors import ConfigError
from webhook.mistakes import mistake_in_file

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
DEFAULT_NAMESPACE = "default"

_MISSING = re.compile(r"File does not exist: (.+)")  # as the library writes it

# What the library raises for a file that is not a kubeconfig.
_ODD = (ConfigException, yaml.YAMLError, OSError, ValueError, TypeError, LookupError, AttributeError)


@dataclass(frozen=True, slots=True)
class Credentials:
    """How to get at the API server.

    Attributes:
        kubeconfig: None means the service account in a pod, and elsewhere for the file that kubectl takes.
        context: of the kubeconfig; None means its current one.
        directory: where a pod finds its service account.
    """

    kubeconfig: Path | None = None
    context: str | None = None
    directory: Path = SERVICE_ACCOUNT

    def load(self) -> Configuration:
        """Read them, as they are now.

        Raises:
            ConfigError: there are none, or they cannot be read.
        """
        configuration = Configuration()
        try:
            if self.in_cluster:
                loader = InClusterConfigLoader(str(self.directory / "token"), str(self.directory / "ca.crt"))
                loader.load_and_set(configuration)
            else:
                load_kube_config(self._file, self.context, configuration, persist_config=False)
        except _ODD as error:
            raise self._refusal(error) from error
        return configuration

    @property
    def namespace(self) -> str:
        """The pod's own, or that of the context.

        Raises:
            ConfigError: as `load`.
        """
        try:
            if self.in_cluster:
                return (self.directory / "namespace").read_text().strip()
            contexts, current = list_kube_config_contexts(self._file)
            chosen: dict[str, Any] = next((c for c in contexts if c["name"] == self.context), current)
            return str(chosen["context"].get("namespace") or DEFAULT_NAMESPACE)
        except _ODD as error:
            raise self._refusal(error) from error

    @property
    def webhook_namespace(self) -> str:
        """The pod's own namespace; outside a pod the usual one of the webhook.

        Raises:
            ConfigError: as `load`.
        """
        return self.namespace if self.in_cluster else names.WEBHOOK

    @property
    def in_cluster(self) -> bool:
        """Whether this is the service account of a pod."""
        return self.kubeconfig is None and SERVICE_HOST_ENV_NAME in os.environ

    @property
    def _file(self) -> str:
        """The kubeconfig; without one, what kubectl reads. The library reads the variable only when it is imported."""
        return str(self.kubeconfig or os.environ.get("KUBECONFIG") or "~/.kube/config")

    def _refusal(self, error: Exception) -> ConfigError:
        where = self.directory if self.in_cluster else self.kubeconfig or "the default kubeconfig"
        hint = "" if self.kubeconfig else "; name a kubeconfig with --kubeconfig FILE"
        return ConfigError(f"{where}: no credentials for the API server: {self._reason(error)}{hint}")

    def _reason(self, error: Exception) -> str:
        if isinstance(error, OSError):
            return f"{error.filename}: {mistake_in_file(error)}"
        if named := _MISSING.fullmatch(str(error)):
            return f"{named[1]} does not exist, but the kubeconfig names it"
        if self.in_cluster:
            return "its token or CA certificate is missing or empty"
        if isinstance(error, yaml.YAMLError | UnicodeDecodeError):
            return "it is not YAML; give the file that kubectl uses"
        if "No configuration found" in str(error):
            return "it does not exist, or is empty"
        context = f"the context {self.context}" if self.context else "a current-context"
        return f"it is not a kubeconfig that has {context} with its cluster and user; see `kubectl config view`"
