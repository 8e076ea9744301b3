"""What can go wrong with certificates in a cluster. Messages are for people: what is wrong, and what to do next.

CertsError
├── Again           somebody else was faster, or the API server was busy: a fresh look may do
│   ├── Conflict    what was read is no longer what is there
│   └── Uncalled    the API server got no answer from a webhook
└── Absent          there is no such object
"""


class CertsError(Exception):
    """Something that this program cannot put in order."""


class Again(CertsError):
    """A passing failure; what was asked may or may not have been done, so look again."""


class Conflict(Again):
    """The object was changed, made or deleted after it was read."""


class Uncalled(Again):
    """The API server could not call a webhook, or got no answer that it trusts; the message is its own."""


class Absent(CertsError):
    """The API server knows no such object."""
