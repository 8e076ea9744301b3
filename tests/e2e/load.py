"""Device pods created without a pause, from several clients, and what became of each."""

import threading
import time
from collections import Counter
from itertools import count
from types import TracebackType
from typing import Self

from tests.e2e.api import Answer, Api
from tests.e2e.cluster import Cluster
from tests.e2e.objects import Object, device_pod, pods

CLIENTS = 8
CREATED = "created as repaired"
PAUSE_SECONDS = 0.05


class Load:
    """Creates pods from the begin of a `with` to its end.

    Attributes:
        outcomes: how many pods ended how: `CREATED`, or what the last try brought.
        broken: how many calls of the webhook broke, told by the API server with a 500.
        slowest: seconds of the slowest creation.
        seconds: how long it lasted.
    """

    def __init__(self, cluster: Cluster, namespace: str, tries: int = 1) -> None:
        """Prepare it.

        Args:
            cluster: where to.
            namespace: where to.
            tries: how often a client requests the same pod while the API server answers 500; a controller goes on for ever.
        """
        self._cluster = cluster
        self._namespace = namespace
        self._tries = tries
        self._numbers = count(1)
        self._stop = threading.Event()
        self._clients = [threading.Thread(target=self._create) for _ in range(CLIENTS)]
        self.outcomes: Counter[str] = Counter()
        self.broken: Counter[str] = Counter()
        self.slowest = 0.0
        self.seconds = 0.0

    def __enter__(self) -> Self:
        self._began = time.monotonic()
        for client in self._clients:
            client.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._stop.set()
        for client in self._clients:
            client.join()
        self.seconds = time.monotonic() - self._began

    @property
    def created(self) -> int:
        return self.outcomes[CREATED]

    @property
    def failed(self) -> dict[str, int]:
        return {outcome: number for outcome, number in self.outcomes.items() if outcome != CREATED}

    def go_on(self, creations: int = 200) -> None:
        """Wait for so many more creations, whatever becomes of them."""
        goal = self.outcomes.total() + creations
        deadline = time.monotonic() + 30
        while self.outcomes.total() < goal:
            assert time.monotonic() < deadline, f"the load stands still: {self}"
            time.sleep(0.02)

    def __str__(self) -> str:
        rate = self.created / self.seconds if self.seconds else 0.0
        went_wrong = f"broken calls: {self.broken.total()}; failed: {self.failed or 'none'}"
        return f"{self.created} pods, {rate:.0f} a second, slowest {self.slowest:.2f} s; {went_wrong}"

    def _create(self) -> None:
        with self._cluster.api() as api:
            while not self._stop.is_set():
                began = time.monotonic()
                answer = self._ask(api, device_pod(f"p{next(self._numbers)}"))
                self.slowest = max(self.slowest, time.monotonic() - began)
                if answer.status != 201:
                    self.outcomes[f"{answer.status} {answer.message}"] += 1
                elif answer.body["spec"]["schedulerName"] != "volcano":
                    self.outcomes["created unrepaired"] += 1
                else:
                    self.outcomes[CREATED] += 1

    def _ask(self, api: Api, pod: Object) -> Answer:
        for left in reversed(range(self._tries)):
            answer = api.post(pods(self._namespace), pod)
            if answer.status == 500 and left:
                self.broken[answer.message] += 1
                time.sleep(PAUSE_SECONDS)
            else:
                break
        return answer
