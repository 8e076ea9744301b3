"""A client of the API server: objects, lists in pages, watches and changes, with a limit on every wait and size.

Sockets and credentials are the Kubernetes client's. Its models are not used: they take ten times the time and memory, and
drop fields that they do not define. Objects stay the JSON that came in.
"""

import re
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from types import MappingProxyType
from typing import Any, NamedTuple
from urllib.parse import urlencode

import orjson
from kubernetes.client.rest import RESTClientObject
from urllib3 import BaseHTTPResponse, Timeout, disable_warnings
from urllib3.exceptions import HTTPError, InsecureRequestWarning

from webhook.cluster.credentials import Credentials
from webhook.errors import ClusterError, ConfigError

CONNECT_SECONDS = 5.0
QUIET_SECONDS = 15.0  # between two bytes of a response
MAX_RETRY_AFTER = 120.0
MAX_STATUS_BYTES = 64 << 10
PAGE = 50  # objects: parsing a page stops all other threads, and takes ten times its size of memory

JSON_PATCH, APPLY_PATCH = "application/json-patch+json", "application/apply-patch+yaml"

_SUCCESS = (HTTPStatus.OK, HTTPStatus.CREATED, HTTPStatus.ACCEPTED)

# Names are parts of paths, and users and the authors of pods choose them: none may lead to another object.
_PATH = re.compile(r"(?:/[A-Za-z0-9][\w.:~%-]*)+", re.ASCII)
_JSON = "application/json"
_NONE: Mapping[str, str] = MappingProxyType({})

Object = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Page:
    """A part of a list.

    Attributes:
        items: each with apiVersion and kind, which lists leave out.
        resource_version: of the whole list: where to start a watch.
        remaining: how many objects are still to come; 0 if none, or if the API server does not report it.
    """

    items: list[Object]
    resource_version: str
    remaining: int = 0


class ResponseLimits(NamedTuple):
    """What a response may take.

    Attributes:
        seconds: for a whole response.
        watch_seconds: between two bytes of a watch; bookmarks come every minute.
        bytes: of one response, and of one line.
    """

    seconds: float = 60.0
    watch_seconds: float = 150.0
    bytes: int = 256 << 20


RESPONSE_LIMITS = ResponseLimits()


@dataclass(frozen=True, slots=True)
class _Content:
    """The body of a request."""

    type: str
    data: bytes


class Client:
    """Sends requests to the API server. Use it from one thread; only `close` may be called from another.

    Paths are those of collections and objects: `/api/v1/nodes`, `/api/v1/namespaces/NAMESPACE/configmaps/NAME`.

    Attributes:
        clock: the API server's time as of its last response; None if it has not given one.
    """

    def __init__(
        self, credentials: Credentials, quiet_seconds: float = QUIET_SECONDS, limits: ResponseLimits = RESPONSE_LIMITS
    ) -> None:
        """Read the credentials; this sends nothing.

        Args:
            credentials: for the API server.
            quiet_seconds: how long to wait for each byte of a response that is no watch.
            limits: what a response may take.

        Raises:
            ConfigError: there are none.
        """
        self.clock: datetime | None = None
        self._quiet_seconds, self._limits = quiet_seconds, limits
        self._credentials = credentials
        configuration = credentials.load()
        if not configuration.verify_ssl:
            disable_warnings(InsecureRequestWarning)  # two lines for each request; the kubeconfig chose it
        self._rest: RESTClientObject | None = RESTClientObject(configuration)
        self._response: BaseHTTPResponse | None = None
        self._closed = False

    def get(self, path: str) -> Object:
        """Get one object.

        Raises:
            ClusterError: the request failed; status 404 if the object does not exist.
        """
        return self._get(path, _NONE)

    def text(self, path: str, limit: int) -> str:
        """Get a resource that is not JSON, such as `/metrics`; at most `limit` bytes.

        Raises:
            ClusterError: the request failed, or the response is longer.
        """
        with self._opened(path, _NONE) as response:
            return self._body(path, response, limit).decode(errors="replace")

    def list(self, path: str, query: Mapping[str, str] = _NONE, limit: int = PAGE) -> Iterator[Object]:
        """All objects of a collection.

        Raises:
            ClusterError: as `pages`.
        """
        for page in self.pages(path, query, limit):
            yield from page.items

    def pages(self, path: str, query: Mapping[str, str] = _NONE, limit: int = PAGE) -> Iterator[Page]:
        """A collection in pages.

        Raises:
            ClusterError: a request failed; status 410 if the list took too long and must start again.
        """
        token = ""
        while True:
            found = self._get(path, {**query, "limit": str(limit)} | ({"continue": token} if token else {}))
            items, metadata = found.get("items"), found.get("metadata")
            if items is None:
                items = []  # Go writes an empty list as null
            if not isinstance(metadata, dict) or not _are_objects(items):
                raise self._error(path, "the response is not a list")
            kind = {"apiVersion": found.get("apiVersion"), "kind": str(found.get("kind")).removesuffix("List")}
            remaining = metadata.get("remainingItemCount")
            yield Page(
                [kind | item for item in items],
                str(metadata.get("resourceVersion", "")),
                remaining if isinstance(remaining, int) else 0,
            )
            before, token = token, str(metadata.get("continue") or "")
            if not token:
                return
            if token == before:
                raise self._error(path, "a list without end")

    def watch(
        self, path: str, resource_version: str, seconds: float, query: Mapping[str, str] = _NONE
    ) -> Iterator[tuple[str, Object]]:
        """Changes of a collection as (type, object), bookmarks included, until the server ends the watch.

        Args:
            path: of the collection.
            resource_version: where to start, as a list or the last object gives it.
            seconds: after which the server should end the watch.
            query: for example a selector.

        Raises:
            ClusterError: the watch broke; status 410 if the resource version is too old, and a new list is needed.
        """
        options = {"watch": "1", "allowWatchBookmarks": "true", "resourceVersion": resource_version}
        options["timeoutSeconds"] = str(max(1, int(seconds)))
        with self._opened(path, {**query, **options}, quiet=self._limits.watch_seconds) as response:
            for line in self._lines(path, response):
                event = self._parsed(path, line)
                kind, found = event.get("type"), event.get("object")
                if not isinstance(kind, str) or not isinstance(found, dict):
                    raise self._error(path, "a line that is not an event")
                if kind == "ERROR":
                    raise self._status_error(path, found, found.get("code"))
                yield kind, found

    def create(self, path: str, new: Object, query: Mapping[str, str] = _NONE) -> None:
        """Add an object to a collection.

        Raises:
            ClusterError: the request failed; status 409 if an object of this name exists.
        """
        self._change("POST", path, query, new)

    def replace(self, path: str, new: Object, query: Mapping[str, str] = _NONE) -> None:
        """Replace an object with one that carries the resource version that was read.

        Raises:
            ClusterError: the request failed; status 409 if the object has changed since.
        """
        self._change("PUT", path, query, new)

    def patch(self, path: str, change: object, content_type: str, query: Mapping[str, str] = _NONE) -> Sequence[str]:
        """Patch an object.

        Args:
            path: of the object.
            change: the operations of a JSON_PATCH, or the fields of an APPLY_PATCH.
            content_type: of the change.
            query: for example `fieldManager`, which server-side apply needs.

        Returns:
            The warnings of the API server and of its webhooks.

        Raises:
            ClusterError: the request failed; status 422 if a test of a JSON patch failed.
        """
        return self._change("PATCH", path, query, change, content_type)

    def delete(self, path: str) -> None:
        """Delete an object.

        Raises:
            ClusterError: the request failed; status 404 if the object does not exist.
        """
        self._change("DELETE", path, _NONE, None)

    def close(self) -> None:
        """End the current request from any thread: it raises ClusterError there, and so do all later ones."""
        self._closed = True
        response = self._response
        if response is not None:
            with suppress(OSError, ValueError, RuntimeError):  # it has just ended by itself
                response.shutdown()

    def release(self) -> None:
        """Close its idle connections."""
        if self._rest is not None:
            self._rest.pool_manager.clear()

    def _get(self, path: str, query: Mapping[str, str]) -> Object:
        with self._opened(path, query) as response:
            return self._parsed(path, self._body(path, response, self._limits.bytes))

    def _change(
        self, method: str, path: str, query: Mapping[str, str], new: object, content_type: str = _JSON
    ) -> Sequence[str]:
        content = None if new is None else _Content(content_type, orjson.dumps(new))
        with self._opened(path, query, method=method, content=content) as response:
            self._body(path, response, self._limits.bytes)  # to the end, so that the connection can be used again
            return response.headers.getlist("Warning")

    @contextmanager
    def _opened(
        self,
        path: str,
        query: Mapping[str, str],
        *,
        quiet: float | None = None,
        method: str = "GET",
        content: _Content | None = None,
    ) -> Iterator[BaseHTTPResponse]:
        """A successful response whose body is still to be read; `quiet` seconds may pass between two bytes of it."""
        response: BaseHTTPResponse | None = None
        if not _PATH.fullmatch(path):
            raise ConfigError(
                f"no object of an API server can have the path {path[:200]!r}; check the namespace and the name"
            )
        url = f"{path}?{urlencode(query)}" if query else path
        try:
            response = self._response = self._send(method, url, content, quiet or self._quiet_seconds)
            if self._closed:
                raise self._error(path, "closed")
            self.clock = _time(response.headers.get("Date", ""))
            if response.status not in _SUCCESS:
                raise self._http_error(path, response)
            yield response
        except HTTPError as error:
            raise self._error(path, _reason(error)) from error
        except (ValueError, AttributeError) as error:
            if not self._closed:  # `ssl` raises them where `close` takes the session from a socket that is read
                raise
            raise self._error(path, "closed") from error
        finally:
            self._response = None
            if response is not None:
                response.close()

    def _send(self, method: str, url: str, content: _Content | None, quiet: float) -> BaseHTTPResponse:
        try:
            rest = self._rest = self._rest or RESTClientObject(self._credentials.load())
            headers = {"Accept": _JSON, "User-Agent": "vgpu-webhook"}
            if content is not None:
                headers["Content-Type"] = content.type
            for setting in rest.configuration.auth_settings().values():
                headers[setting["key"]] = setting["value"]
        except (ConfigError, OSError) as error:  # the library reads a token's file again every minute
            raise ClusterError(f"no credentials for the API server: {error}") from error
        response: BaseHTTPResponse = rest.pool_manager.urlopen(
            method,
            rest.configuration.host.rstrip("/") + url,
            body=content.data if content else None,
            headers=headers,
            timeout=Timeout(connect=min(CONNECT_SECONDS, quiet), read=quiet),
            retries=False,
            preload_content=False,
        )
        return response

    def _body(self, path: str, response: BaseHTTPResponse, limit: int) -> bytes:
        deadline, left, pieces = time.monotonic() + self._limits.seconds, limit, []
        while piece := response.read1(1 << 16, decode_content=False):
            pieces.append(piece)
            left -= len(piece)
            if left < 0:
                raise self._error(path, "a response without end")
            if time.monotonic() > deadline:
                raise self._error(path, f"a response that is not finished in {self._limits.seconds:.0f} s")
        return b"".join(pieces)

    def _lines(self, path: str, response: BaseHTTPResponse) -> Iterator[bytes]:
        """The body line by line, as it comes."""
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
            elif size > self._limits.bytes:
                raise self._error(path, "a line without end")
        if size:
            raise self._error(path, "the connection ended within a line")

    def _parsed(self, path: str, data: bytes) -> Object:
        try:
            found = orjson.loads(data)
        except orjson.JSONDecodeError as error:
            raise self._error(path, "the response is not JSON", HTTPStatus.OK) from error
        if not isinstance(found, dict):
            raise self._error(path, "the response is not an object", HTTPStatus.OK)
        return found

    def _http_error(self, path: str, response: BaseHTTPResponse) -> ClusterError:
        status: Any = None
        with suppress(HTTPError, ClusterError, orjson.JSONDecodeError):  # the code alone is enough
            status = orjson.loads(self._body(path, response, MAX_STATUS_BYTES))
        error = self._status_error(path, status, response.status, _seconds(response.headers.get("Retry-After", "")))
        if response.status == HTTPStatus.UNAUTHORIZED:
            self._rest = None  # reads all credentials anew: they may have been replaced at any time
        return error

    def _status_error(self, path: str, status: Any, code: Any, retry_after: float = 0.0) -> ClusterError:
        """The error that a Kubernetes Status describes."""
        message = str(status.get("message") or "") if isinstance(status, dict) else ""
        message = " ".join(message.split())[:300]
        number = code if isinstance(code, int) else 500
        return self._error(path, f"{number} {message}".rstrip(), number, retry_after, message)

    def _error(self, path: str, what: str, status: int = 0, retry_after: float = 0.0, reason: str = "") -> ClusterError:
        """An error that names address and path."""
        host = self._rest.configuration.host if self._rest else "the API server"
        return ClusterError(f"{host}{path}: {what}", status, retry_after, reason)


def _are_objects(items: Any) -> bool:
    return isinstance(items, list) and all(isinstance(item, dict) for item in items)


def _seconds(retry_after: str) -> float:
    return min(float(retry_after), MAX_RETRY_AFTER) if retry_after.isascii() and retry_after.isdigit() else 0.0


def _time(date: str) -> datetime | None:
    try:
        return parsedate_to_datetime(date)
    except ValueError:
        return None


def _reason(error: BaseException) -> str:
    """The cause below HTTP, without the library's wrappers and the addresses of its objects."""
    root = error
    while (cause := root.__cause__ or root.__context__) is not None:
        root = cause
    if isinstance(root, TimeoutError):
        return "no answer in time"
    if isinstance(root, OSError):
        return getattr(root, "verify_message", "") or root.strerror or "the connection broke"
    return "the connection broke"
