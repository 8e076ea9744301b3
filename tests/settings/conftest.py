"""The fake API server of tests/cluster, for settings that come from a cluster."""

from tests.cluster.conftest import api, authority, credentials

__all__ = ["api", "authority", "credentials"]
