"""The exceptions of this project, by who can fix them.

    WebhookError
    ├── RequestError            the request is invalid: HTTP 4xx, no verdict
    │   ├── NotJson
    │   ├── NotAReview          JSON, but not an AdmissionReview that can be answered
    │   ├── Malformed           a review whose object has the wrong shape: `containers: "string"`
    │   ├── WrongMediaType      415
    │   ├── TooLarge            413
    │   └── TooSlow             408
    ├── ConfigError             a file of the operator is invalid: refused whole, the last good one stays
    │   └── Mistakes            it has several mistakes
    ├── ClusterError            a request to the API server failed
    └── StoreError              the database of decisions cannot be used

A refused pod is none of these: a denial is a value (webhook.rules.context.Finding), never an exception.
"""

from collections.abc import Sequence


class WebhookError(Exception):
    """The base class of every error that this project raises on purpose."""


class RequestError(WebhookError):
    """The request is invalid. The message goes back to the caller, with the HTTP status and the reason of the class."""

    status = 400
    reason = "BadRequest"

    def __init_subclass__(cls, status: int = 400, reason: str = "BadRequest") -> None:
        cls.status, cls.reason = status, reason


class NotJson(RequestError):
    """The body is not one JSON document."""


class NotAReview(RequestError):
    """The body is JSON, but not an AdmissionReview that can be answered."""


class Malformed(RequestError):
    """The reviewed object does not have the shape that its kind promises."""

    def __init__(self, path: str, expected: str, value: object, found: str = "") -> None:
        """Take the path of the field, what it must be, its value, and what that is; its type, if that is empty."""
        self.path, self._problem = path, (expected, value, found)
        super().__init__(f"{path or 'the object'} must be {expected}, not {found or json_type(value)}")

    def at(self, path: str) -> "Malformed":
        """The same, for an object that has the field at another path."""
        return Malformed(path, *self._problem)


class WrongMediaType(RequestError, status=415, reason="UnsupportedMediaType"):
    """The Content-Type is not JSON."""


class TooLarge(RequestError, status=413, reason="RequestEntityTooLarge"):
    """The body is larger than any API server would send."""


class TooSlow(RequestError, status=408, reason="Timeout"):
    """The body did not arrive in time."""


class ConfigError(WebhookError):
    """A device config, policy, fleet or certificate file cannot be used. The message names file, place and remedy."""


class Mistakes(ConfigError):
    """All mistakes of a file.

    Attributes:
        source: the file.
        each: one sentence a mistake, with its place in the file.
    """

    def __init__(self, source: str, each: Sequence[str]) -> None:
        super().__init__(f"{source}: {'; '.join(each)}")
        self.source = source
        self.each = tuple(each)


class ClusterError(WebhookError):
    """The API server refuses, sends an invalid response, or cannot be reached. The message names address and path.

    Attributes:
        status: of its response; 0 if none came.
        retry_after: seconds to wait before the next request.
        reason: the message of its response; empty if there is none.
    """

    def __init__(self, message: str, status: int = 0, retry_after: float = 0.0, reason: str = "") -> None:
        super().__init__(message)
        self.status = status
        self.retry_after = retry_after
        self.reason = reason


class StoreError(WebhookError):
    """The database of decisions cannot be used. The message names it, without user and password."""


_TYPES = {dict: "an object", list: "a list", str: "a string", bool: "a boolean", int: "a number", float: "a number"}


def json_type(value: object) -> str:
    """The JSON type of a value, for people."""
    return _TYPES.get(type(value), "null")
