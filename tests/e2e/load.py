"""Several clients that create device pods without a pause, and the outcome of each creation."""

import threading
import time
from collections import Counter
from itertools import count
from types import TracebackType
from typing import Self

from tests.e2e.api import Api, Response
from tests.e2e.cluster import Cluster
from tests.e2e.objects import Object, device_pod, pods
from tests.server.program import until

CLIENTS = 8
CREATED = "created as repaired"
PAUSE_SECONDS = 0.05


class Load:
    """Creates pods while its `with` block runs.

    Attributes:
        outcomes: the number of pods by outcome: `CREATED`, or the error of the last attempt.
        failed_calls: the number of failed calls of the webhook, which the API server reports with status 500.
    """

    def __init__(self, cluster: Cluster, namespace: str, tries: int = 1) -> None:
        """Prepare the load; each pod is tried so often while the API server responds with 500: a controller never stops."""
        self._cluster = cluster
        self._namespace = namespace
        self._tries = tries
        self._numbers = count(1)
        self._stop = threading.Event()
        self._clients = [threading.Thread(target=self._create) for _ in range(CLIENTS)]
        self.outcomes: Counter[str] = Counter()
        self.failed_calls: Counter[str] = Counter()

    def __enter__(self) -> Self:
        for client in self._clients:
            client.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._stop.set()
        for client in self._clients:
            client.join()

    @property
    def created(self) -> int:
        return self.outcomes[CREATED]

    @property
    def failed(self) -> dict[str, int]:
        return {outcome: number for outcome, number in dict(self.outcomes).items() if outcome != CREATED}

    def wait_for_creations(self, creations: int = 200) -> None:
        """Wait for more creations, successful or not."""
        target = self.outcomes.total() + creations
        until(lambda: self.outcomes.total() >= target)

    def __str__(self) -> str:
        return f"{self.created} pods; broken calls: {self.failed_calls.total()}; failed: {self.failed or 'none'}"

    def _create(self) -> None:
        with self._cluster.api() as api:
            while not self._stop.is_set():
                response = self._post(api, device_pod(f"p{next(self._numbers)}"))
                if response.status != 201:
                    self.outcomes[f"{response.status} {response.message}"] += 1
                elif response.body["spec"]["schedulerName"] != "volcano":
                    self.outcomes["created unrepaired"] += 1
                else:
                    self.outcomes[CREATED] += 1

    def _post(self, api: Api, pod: Object) -> Response:
        for attempts_left in reversed(range(self._tries)):
            response = api.post(pods(self._namespace), pod)
            if response.status == 500 and attempts_left:
                self.failed_calls[response.message] += 1
                time.sleep(PAUSE_SECONDS)
            else:
                break
        return response
