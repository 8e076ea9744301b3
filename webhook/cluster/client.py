"""What can be asked of the API server: an object, a list in pages, a watch. Answers stay the JSON that they came in.

The models of the Kubernetes client are not used: they take ten times the time and memory, and drop what they do not know.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import orjson

from webhook.cluster.connection import Connection
from webhook.cluster.credentials import Credentials

QUIET_SECONDS = 15.0  # between two bytes of an answer
WATCH_QUIET_SECONDS = 150.0  # between two bytes of a watch: bookmarks come every minute
PAGE = 50  # objects: to parse a page holds up all other threads, and takes ten times its size of memory

NOT_FOUND = 404
GONE = 410

_NONE: Mapping[str, str] = MappingProxyType({})

Object = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Page:
    """A part of a list.

    Attributes:
        items: each with apiVersion and kind, which lists leave out.
        resource_version: of the list as a whole: where to watch from.
        remaining: how many objects are still to come; 0 if none, or if the API server does not say.
    """

    items: list[Object]
    resource_version: str
    remaining: int = 0


class Client:
    """Asks the API server. Belongs to one thread, but for `close`.

    Paths are those of collections and objects: `/api/v1/nodes`, `/api/v1/namespaces/NAMESPACE/configmaps/NAME`.
    """

    def __init__(self, credentials: Credentials) -> None:
        """Read the credentials; nothing is sent yet.

        Raises:
            ConfigError: there are none.
        """
        self._connection = Connection(credentials)

    def get(self, path: str) -> Object:
        """One object.

        Raises:
            ClusterError: it did not come; status 404 if there is none.
        """
        return self._answer(path, _NONE)

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
            ClusterError: a page did not come; status 410 if the list took too long and has to be begun anew.
        """
        token = ""
        while True:
            found = self._answer(path, {**query, "limit": str(limit)} | ({"continue": token} if token else {}))
            items, metadata = found.get("items"), found.get("metadata")
            if items is None:
                items = []  # how Go spells an empty list
            if not isinstance(metadata, dict) or not _are_objects(items):
                raise self._connection.error(path, "the answer is no list")
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
                raise self._connection.error(path, "a list without end")

    def watch(
        self, path: str, resource_version: str, seconds: float, query: Mapping[str, str] = _NONE
    ) -> Iterator[tuple[str, Object]]:
        """Changes of a collection as (type, object), bookmarks among them, until the server ends them in good order.

        Args:
            path: of the collection.
            resource_version: where to begin, as a list or the last object has it.
            seconds: after which the server is to end.
            query: a selector, say.

        Raises:
            ClusterError: it broke; status 410 if the resource version is too old, and a list is needed.
        """
        asked = {"watch": "1", "allowWatchBookmarks": "true", "resourceVersion": resource_version}
        asked["timeoutSeconds"] = str(max(1, int(seconds)))
        with self._connection.opened(path, {**query, **asked}, WATCH_QUIET_SECONDS) as response:
            for line in self._connection.lines(path, response):
                event = self._connection.parsed(path, line)
                kind, found = event.get("type"), event.get("object")
                if not isinstance(kind, str) or not isinstance(found, dict):
                    raise self._connection.error(path, "an event that is none")
                if kind == "ERROR":
                    raise self._connection.refusal(path, found, found.get("code"))
                yield kind, found

    def create(self, path: str, new: Object) -> None:
        """Add an object to a collection.

        Raises:
            ClusterError: it was not added; status 409 if there is one of this name.
        """
        self._change("POST", path, new)

    def replace(self, path: str, new: Object) -> None:
        """Replace an object by one with the resource version that was read.

        Raises:
            ClusterError: it was not; status 409 if somebody else was faster.
        """
        self._change("PUT", path, new)

    def delete(self, path: str) -> None:
        """Delete an object.

        Raises:
            ClusterError: it was not; status 404 if there is none.
        """
        self._change("DELETE", path, None)

    def close(self) -> None:
        """End what is going on, from any thread: it raises ClusterError there, and so does all that follows."""
        self._connection.close()

    def _answer(self, path: str, query: Mapping[str, str]) -> Object:
        with self._connection.opened(path, query, QUIET_SECONDS) as response:
            return self._connection.parsed(path, self._connection.body(path, response))

    def _change(self, method: str, path: str, new: Object | None) -> None:
        body = None if new is None else orjson.dumps(new)
        with self._connection.opened(path, _NONE, QUIET_SECONDS, method, body) as response:
            self._connection.body(path, response)  # to the end, so that the connection can be used again


def _are_objects(items: Any) -> bool:
    return isinstance(items, list) and all(isinstance(item, dict) for item in items)
