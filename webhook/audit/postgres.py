"""A connection to PostgreSQL with a time limit for each response.

While a server is frozen (its processes are stopped, or its disk hangs), its kernel still acknowledges what TCP sends.
Neither `statement_timeout` nor a timeout of TCP stops a query there.
"""

import time
from typing import Any, TypeVar

from psycopg import Connection, OperationalError
from psycopg.abc import PQGen

PING_SECONDS = 2.0  # for what is sent to a connection before it is used

Result = TypeVar("Result")


class LimitedConnection(Connection[Any]):
    """A connection that closes if a response takes too long.

    Attributes:
        answer_seconds: the limit for each response.
    """

    answer_seconds: float = PING_SECONDS

    def wait(self, gen: PQGen[Result], *args: Any, **kwargs: Any) -> Result:
        """Wait for a response.

        Raises:
            OperationalError: it takes too long.
        """
        return super().wait(self._limited(gen), *args, **kwargs)

    def _limited(self, steps: PQGen[Result]) -> PQGen[Result]:
        end = time.monotonic() + self.answer_seconds
        try:
            wanted = next(steps)
            while True:
                ready = yield wanted
                if not ready and time.monotonic() > end:  # psycopg resumes every 0.1 s
                    self.close()
                    raise OperationalError(f"it has not responded for {self.answer_seconds:g} s")
                wanted = steps.send(ready)
        except StopIteration as done:
            result: Result = done.value
            return result
