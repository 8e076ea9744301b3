"""What is installed: its version, and where its documentation is."""

from functools import cache
from importlib.metadata import PackageNotFoundError, metadata


@cache
def product_version() -> str:
    """The version that is installed."""
    return _installed("Version") or "unknown"


@cache
def documentation(page: str) -> str:
    """The address of a page of the documentation; empty if the project is not installed."""
    source = _installed("Project-URL").partition(", ")[2]
    return source and f"{source}/blob/main/docs/{page}"


def _installed(field: str) -> str:
    try:
        return metadata("volcano-vgpu-webhook")[field] or ""
    except PackageNotFoundError:
        return ""
