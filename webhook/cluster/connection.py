"""Requests to the API server, with a bound on every wait and size. Sockets and credentials are the Kubernetes client's."""

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any
from urllib.parse import urlencode

import orjson
from kubernetes.client.rest import RESTClientObject
from urllib3 import BaseHTTPResponse, Timeout
from urllib3.exceptions import HTTPError

from webhook.cluster.credentials import Credentials
from webhook.errors import ClusterError, ConfigError

CONNECT_SECONDS = 5.0
ANSWER_SECONDS = 60.0  # for the whole of an answer
MAX_RETRY_AFTER = 120.0
MAX_BYTES = 256 << 20  # of one answer, and of one line
MAX_STATUS_BYTES = 64 << 10

_GOOD = (200, 201, 202)
_UNAUTHORIZED = 401


class Connection:
    """One conversation. Belongs to one thread, but for `close`."""

    def __init__(self, credentials: Credentials) -> None:
        """Read the credentials; nothing is sent yet.

        Raises:
            ConfigError: there are none.
        """
        self._credentials = credentials
        self._rest: RESTClientObject | None = RESTClientObject(credentials.load())
        self._response: BaseHTTPResponse | None = None
        self._closed = False

    def close(self) -> None:
        """End what is going on, from any thread: it raises ClusterError there, and so does all that follows."""
        self._closed = True
        response = self._response
        if response is not None:
            with suppress(OSError, ValueError, RuntimeError):  # it has just ended by itself
                response.shutdown()

    @contextmanager
    def opened(
        self, path: str, query: Mapping[str, str], quiet: float, method: str = "GET", content: bytes | None = None
    ) -> Iterator[BaseHTTPResponse]:
        """A good answer, whose body is still to come.

        Args:
            path: below the address of the API server.
            query: may be empty.
            quiet: how many seconds may pass between two bytes.
            method: of HTTP.
            content: JSON to send.

        Raises:
            ClusterError: none came, or it broke in the caller's hands.
        """
        response: BaseHTTPResponse | None = None
        try:
            response = self._response = self._send(
                f"{path}?{urlencode(query)}" if query else path, quiet, method, content
            )
            if self._closed:
                raise self.error(path, "closed")
            if response.status not in _GOOD:
                raise self._http_error(path, response)
            yield response
        except HTTPError as error:
            raise self.error(path, _reason(error)) from error
        finally:
            self._response = None
            if response is not None:
                response.close()

    def body(self, path: str, response: BaseHTTPResponse, limit: int = MAX_BYTES) -> bytes:
        """All of an answer."""
        deadline, left, pieces = time.monotonic() + ANSWER_SECONDS, limit, []
        while piece := response.read1(1 << 16, decode_content=False):
            pieces.append(piece)
            left -= len(piece)
            if left < 0:
                raise self.error(path, "an answer without end")
            if time.monotonic() > deadline:
                raise self.error(path, f"an answer that is not finished in {ANSWER_SECONDS:.0f} s")
        return b"".join(pieces)

    def lines(self, path: str, response: BaseHTTPResponse) -> Iterator[bytes]:
        """An answer line by line, as it comes."""
        pieces: list[bytes] = []
        size = 0
        for piece in response.stream(1 << 20, decode_content=False):
            first, *more = piece.split(b"\n")
            pieces.append(first)
            size += len(first)
            if more:
                yield b"".join(pieces)
                yield from more[:-1]
                pieces, size = [more[-1]], len(more[-1])
            elif size > MAX_BYTES:
                raise self.error(path, "a line without end")
        if size:
            raise self.error(path, "the connection ended within a line")

    def parsed(self, path: str, data: bytes) -> dict[str, Any]:
        """JSON that has to be an object."""
        try:
            found = orjson.loads(data)
        except orjson.JSONDecodeError as error:
            raise self.error(path, "the answer is not JSON") from error
        if not isinstance(found, dict):
            raise self.error(path, "the answer is no object")
        return found

    def refusal(self, path: str, status: Any, code: Any, retry_after: float = 0.0) -> ClusterError:
        """What a Status says."""
        message = str(status.get("message") or "") if isinstance(status, dict) else ""
        number = code if isinstance(code, int) else 500
        return self.error(path, f"{number} {' '.join(message.split())[:300]}".rstrip(), number, retry_after)

    def error(self, path: str, what: str, status: int = 0, retry_after: float = 0.0) -> ClusterError:
        """An error that names address and path."""
        host = self._rest.configuration.host if self._rest else "the API server"
        return ClusterError(f"{host}{path}: {what}", status, retry_after)

    def _send(self, url: str, quiet: float, method: str, content: bytes | None) -> BaseHTTPResponse:
        try:
            rest = self._rest = self._rest or RESTClientObject(self._credentials.load())
            headers = {"Accept": "application/json", "User-Agent": "vgpu-webhook"}
            if content is not None:
                headers["Content-Type"] = "application/json"
            for setting in rest.configuration.auth_settings().values():
                headers[setting["key"]] = setting["value"]
        except (ConfigError, OSError) as error:  # the file of a token is read again every minute
            raise ClusterError(f"no credentials for the API server: {error}") from error
        answer: BaseHTTPResponse = rest.pool_manager.urlopen(
            method,
            rest.configuration.host.rstrip("/") + url,
            body=content,
            headers=headers,
            timeout=Timeout(connect=CONNECT_SECONDS, read=quiet),
            retries=False,
            preload_content=False,
        )
        return answer

    def _http_error(self, path: str, response: BaseHTTPResponse) -> ClusterError:
        status: Any = None
        with suppress(HTTPError, ClusterError, orjson.JSONDecodeError):  # the code alone says enough
            status = orjson.loads(self.body(path, response, MAX_STATUS_BYTES))
        error = self.refusal(path, status, response.status, _seconds(response.headers.get("Retry-After", "")))
        if response.status == _UNAUTHORIZED:
            self._rest = None  # all credentials are read anew: the old ones may have been replaced at any time
        return error


def _seconds(retry_after: str) -> float:
    return min(float(retry_after), MAX_RETRY_AFTER) if retry_after.isascii() and retry_after.isdigit() else 0.0


def _reason(error: BaseException) -> str:
    """What went wrong below HTTP, without the library's wrappings and the addresses of its objects."""
    root = error
    while (cause := root.__cause__ or root.__context__) is not None:
        root = cause
    if isinstance(root, TimeoutError):
        return "no answer in time"
    if isinstance(root, OSError):
        return getattr(root, "verify_message", "") or root.strerror or "the connection broke"
    return "the connection broke"
