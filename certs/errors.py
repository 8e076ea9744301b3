"""What can go wrong with certificates in a cluster. Each message says what is wrong and what to do next.

CertsError
├── Again           another client was faster, or the API server was busy: read everything again, then retry
│   ├── Conflict    an object changed after it was read
│   └── Uncalled    the API server got no response from a webhook
└── Absent          the object does not exist
"""

from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus

from webhook.errors import ClusterError

RIGHTS = "`vgpu-webhook certs --help` lists the rights that are needed"
_RETRIED = (429, 500, 502, 503, 504)


class CertsError(Exception):
    """A problem that this program cannot repair."""


class Again(CertsError):
    """A temporary failure. The request may or may not have been carried out: read everything again."""


class Conflict(Again):
    """The object was changed, created or deleted after it was read."""


class Uncalled(Again):
    """The API server could not call a webhook, or got no valid response; the message is the API server's."""


class Absent(CertsError):
    """The object does not exist."""


@contextmanager
def explained(what: str, absent: CertsError | None = None) -> Iterator[None]:
    """Turn errors of the API server into CertsErrors.

    Args:
        what: the attempt, such as `get Secret a/b`.
        absent: the error if the object does not exist; None for `Absent`.
    """
    try:
        yield
    except ClusterError as error:
        raise (absent if absent and error.status == HTTPStatus.NOT_FOUND else _explanation(what, error)) from error


def _explanation(what: str, error: ClusterError) -> CertsError:
    reason = error.reason or "it gave no reason"
    match error.status:
        case 0:
            return Again(
                f"cannot {what}: the API server does not answer: {error}; "
                "check that it is reachable from here, or give it more time with --timeout"
            )
        case 200:
            return CertsError(f"cannot {what}: {error}: this is not an API server; check the address in the kubeconfig")
        case 401:
            return CertsError(f"cannot {what}: the API server does not accept these credentials; renew them ({reason})")
        case 403:
            return CertsError(f"not allowed to {what}: {reason}; {RIGHTS}")
        case 404:
            return Absent(f"cannot {what}: {reason}")
        case 409:
            return Conflict(f"cannot {what}: another client was faster: {reason}")
        case 422 if what.startswith("patch"):  # a test of the JSON patch failed
            return Conflict(f"cannot {what}: it was changed after it was read: {reason}")
        case 500 if "failed calling webhook" in reason:
            return Uncalled(reason)
        case status if status in _RETRIED:
            return Again(f"cannot {what}: the API server responds with {status}: {reason}; try again later")
        case status:
            return CertsError(f"cannot {what}: the API server responds with {status}: {reason}")
