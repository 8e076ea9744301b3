"""etcd and kube-apiserver on the loopback address: a cluster that stores objects and runs no controller or kubelet."""

import json
import secrets
import subprocess
from collections.abc import Sequence
from http import HTTPStatus
from pathlib import Path
from typing import Any

from certs import pki
from tests.cluster.apiserver import write_kubeconfig
from tests.e2e.api import Api
from tests.e2e.process import Daemon
from tests.parts.compiled import API_SERVER
from tests.server.client import SECONDS
from tests.server.program import free_port, until

HERE = Path(__file__).parent
ASSETS_HELP = f"there is no API server: {API_SERVER.help}"

ADMIN_TOKEN = secrets.token_urlsafe()
DAY = 86_400  # seconds


assets = API_SERVER.find


def api_server_version() -> str:
    """Such as `Kubernetes v1.37.2`."""
    command = [assets() or "", "kube-apiserver"]
    return subprocess.run([Path(*command), "--version"], capture_output=True, text=True, check=True).stdout.strip()


class Cluster:
    """A running API server with etcd; `close` stops both."""

    def __init__(self, binaries: Path, directory: Path, *flags: str, hosts: Sequence[str] = ()) -> None:
        """Start it with data, keys and logs in an empty directory, and wait until it is ready.

        It has more flags, and more names and addresses (`hosts`) than those of the loopback interface.

        Raises:
            AssertionError: one of them does not start; the message contains the end of its log.
        """
        self._binaries = binaries
        self._directory = directory
        self._flags = flags
        self._hosts = hosts
        self._daemons: list[Daemon] = []
        self.port = free_port()
        self._etcd_port = free_port()
        self.ca = directory / pki.CA
        self._tokens = directory / "tokens.csv"
        self.audit_log = directory / "audit.log"
        try:
            self._issue_credentials()
            self._start_etcd()
            self._start_api_server()
            self.kubeconfig = self.kubeconfig_for_token(ADMIN_TOKEN, "admin")
        except BaseException:
            self.close()
            raise

    def api(self, user: str | None = None, group: str | None = None) -> Api:
        """A connection as the administrator, or as a user that the administrator impersonates."""
        return Api(self.port, self.ca, ADMIN_TOKEN, user, group)

    def kubeconfig_for_token(self, token: str, name: str) -> Path:
        path, server = self._directory / f"{name}.kubeconfig", f"https://127.0.0.1:{self.port}"
        return write_kubeconfig(path, server, self.ca, {"e2e": token}, "default")

    def kubeconfig_for_account(self, namespace: str, name: str) -> Path:
        """Write a kubeconfig for a service account, with the permissions of that account."""
        return self.kubeconfig_for_token(self.token_of_account(namespace, name), f"{namespace}-{name}")

    def token_of_account(self, namespace: str, name: str) -> str:
        """A token of a service account, valid for a day."""
        path = f"/api/v1/namespaces/{namespace}/serviceaccounts/{name}/token"
        kind = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest"}
        with self.api() as api:
            response = api.post(path, kind | {"spec": {"expirationSeconds": DAY}})
        assert response.status == 201, response.message
        return str(response.body["status"]["token"])

    def restart_api_server(self) -> None:
        """Stop the API server, which breaks all connections, and start it again."""
        self._daemons.pop().close()
        self._start_api_server()

    def kubectl(self, *arguments: str, stdin: Any = None) -> subprocess.CompletedProcess[str]:
        """Run kubectl as the administrator; the input of `-f -` is a text, or an object to serialize as JSON."""
        text = stdin if isinstance(stdin, str | None) else json.dumps(stdin)
        environment = {"PATH": "", "HOME": str(self._directory), "KUBECONFIG": str(self.kubeconfig)}
        command = [str(self._binaries / "kubectl"), *arguments]
        return subprocess.run(
            command, input=text, env=environment, capture_output=True, text=True, timeout=SECONDS, check=False
        )

    def apply(self, *documents: Any) -> None:
        """Apply objects, and wait until kubectl finds the kinds that they define; fails if the API server rejects one."""
        stream = "\n".join(json.dumps(document) for document in documents)
        result = self.kubectl("apply", "--server-side", "--force-conflicts", "-f", "-", stdin=stream)
        assert result.returncode == 0, result.stderr
        kinds = {each["metadata"]["name"] for each in documents if each["kind"] == "CustomResourceDefinition"}
        if kinds:  # they are served when they are listed
            until(lambda: kinds <= {*self.kubectl("api-resources", "--output=name").stdout.split()})

    def audit_events(self) -> list[dict[str, Any]]:
        """The events of the audit log of the API server, without an incomplete last line."""
        lines = self.audit_log.read_text().splitlines(keepends=True)
        return [json.loads(line) for line in lines if line.endswith("\n")]

    def close(self) -> None:
        for daemon in reversed(self._daemons):
            daemon.close()

    def _start(self, name: str, *flags: str) -> Daemon:
        daemon = Daemon([self._binaries / name, *flags], self._directory / f"{name}.log")
        self._daemons.append(daemon)
        return daemon

    def _issue_credentials(self) -> None:
        authority = pki.make_ca("e2e CA")
        leaf = pki.make_leaf(authority, ["localhost", "127.0.0.1", *self._hosts])
        pki.write(self._directory, leaf, authority.certificate)
        self._tokens.write_text(f"{ADMIN_TOKEN},admin,1,system:masters\n")

    def _start_etcd(self) -> None:
        url = f"http://127.0.0.1:{self._etcd_port}"
        daemon = self._start(
            "etcd",
            f"--data-dir={self._directory / 'etcd'}",
            f"--listen-client-urls={url}",
            f"--advertise-client-urls={url}",
            "--listen-peer-urls=http://127.0.0.1:0",
            "--unsafe-no-fsync",
        )
        daemon.wait(lambda: b"serving" in daemon.log.read_bytes())

    def _start_api_server(self) -> None:
        certificate, key = self._directory / pki.CERTIFICATE, self._directory / pki.KEY
        daemon = self._start(
            "kube-apiserver",
            f"--etcd-servers=http://127.0.0.1:{self._etcd_port}",
            "--bind-address=127.0.0.1",
            f"--secure-port={self.port}",
            "--advertise-address=127.0.0.1",
            "--endpoint-reconciler-type=none",  # it would refuse a loopback address
            "--service-cluster-ip-range=127.0.1.0/24",  # calls of a Service stay on this machine
            f"--tls-cert-file={certificate}",
            f"--tls-private-key-file={key}",
            f"--token-auth-file={self._tokens}",
            "--authorization-mode=RBAC",
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--service-account-key-file={certificate}",
            f"--service-account-signing-key-file={key}",
            "--allow-privileged=true",
            f"--audit-policy-file={HERE / 'audit-policy.yaml'}",
            f"--audit-log-path={self.audit_log}",
            *self._flags,
        )
        daemon.wait(self._ready)

    def _ready(self) -> bool:
        try:
            with self.api() as api:
                paths = (
                    "/readyz",
                    "/api/v1/namespaces/kube-system",
                    "/api/v1/namespaces/default",
                )  # it creates these later
                return all(api.get(path).status == HTTPStatus.OK for path in paths)
        except OSError:
            return False
