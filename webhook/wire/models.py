"""The envelope of a review: what of it must be there, and of which type.

Source: k8s.io/api/admission/v1 (and v1beta1, which has the same fields).
"""

from collections.abc import Sequence
from datetime import date
from typing import Annotated, Any, Literal, NamedTuple, NotRequired

from pydantic import ConfigDict, Field, TypeAdapter
from typing_extensions import TypedDict

from webhook import names
from webhook.errors import Malformed

SETTINGS = ("ConfigMap", "ResourceQuota", "Queue")  # kinds with what the webhook and Volcano read as settings

ApiVersion = Literal["admission.k8s.io/v1", "admission.k8s.io/v1beta1"]
Operation = Literal["CREATE", "UPDATE", "DELETE", "CONNECT"]

_STRICT = ConfigDict(strict=True, extra="ignore")
_Text = Annotated[str, Field(max_length=1024)]


class _Kind(TypedDict):
    __pydantic_config__ = _STRICT  # type: ignore[misc]  # pydantic's way to configure a TypedDict
    group: NotRequired[_Text]
    version: NotRequired[_Text]
    kind: _Text


class _User(TypedDict):
    __pydantic_config__ = _STRICT  # type: ignore[misc]
    username: NotRequired[_Text]
    groups: NotRequired[list[str]]


class _Request(TypedDict):
    __pydantic_config__ = _STRICT  # type: ignore[misc]
    uid: Annotated[str, Field(min_length=1, max_length=256)]
    kind: _Kind
    operation: Operation
    subResource: NotRequired[_Text]
    namespace: NotRequired[_Text]
    name: NotRequired[str]  # of a creation, before the API server has looked at its length
    userInfo: NotRequired[_User]
    dryRun: NotRequired[bool | None]
    object: NotRequired[Any]  # looked at by the codec: pydantic would copy a large one
    oldObject: NotRequired[Any]


class _Review(TypedDict):
    __pydantic_config__ = _STRICT  # type: ignore[misc]
    apiVersion: ApiVersion
    kind: Literal["AdmissionReview"]
    request: _Request


ENVELOPE: TypeAdapter[_Review] = TypeAdapter(_Review)


class Request(NamedTuple):  # made for every review, and cheaper to make than a frozen dataclass
    """What is to be reviewed.

    Attributes:
        uid: echoed in the answer.
        api_version: of the review; answered in kind.
        operation: CREATE, UPDATE, DELETE or CONNECT.
        group, kind: of the object.
        sub_resource: `ephemeralcontainers`, `status`, …; empty for the object itself.
        namespace, name: of the object; the name may be empty (generateName).
        user: who sends it.
        dry_run: nothing will be stored.
        object, old_object: as JSON; None where the operation has none.
        size: bytes of the body; 0 if it did not come as one.
        too_large: why the objects are too large to be read, and so None; empty if they were read.
        groups: of the user.
        day: on which it is reviewed, in UTC; None if that is not known, and then no exception holds.
    """

    uid: str
    api_version: str
    operation: str
    group: str
    kind: str
    sub_resource: str
    namespace: str
    name: str
    user: str
    dry_run: bool
    object: dict[str, Any] | None
    old_object: dict[str, Any] | None
    size: int = 0
    too_large: str = ""
    groups: Sequence[str] = ()
    day: date | None = None

    @property
    def is_pod(self) -> bool:
        """Whether the object is a pod."""
        return self.kind == "Pod" and self.group == ""

    @property
    def is_binding(self) -> bool:
        """Whether the object binds a pod to a node."""
        return self.kind == names.BINDING and self.group == ""

    @property
    def new_object(self) -> dict[str, Any]:
        """The object of an operation that must have one.

        Raises:
            Malformed: it has none.
        """
        if self.object is None:
            raise Malformed("request.object", "an object", None)
        return self.object
