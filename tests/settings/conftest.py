"""The fake API server of tests/kube, for settings that come from a cluster."""

from tests.kube.conftest import api, authority, credentials

__all__ = ["api", "authority", "credentials"]
