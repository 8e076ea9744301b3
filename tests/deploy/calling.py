"""Which entries of the webhook configurations an API server would call for a request."""

from dataclasses import dataclass
from typing import Any

import pytest

cel = pytest.importorskip("cel_expr_python.cel", reason="there is no CEL library for this platform")

Json = dict[str, Any]

_VARIABLES = ("object", "oldObject", "request")
_CEL = cel.NewEnv(variables=dict.fromkeys(_VARIABLES, cel.Type.DYN))


@dataclass(frozen=True)
class Entry:
    """An entry with its conditions, compiled."""

    webhook: Json
    conditions: list[Any]

    @property
    def name(self) -> str:
        return self.webhook["name"].partition(".")[0]

    @property
    def path(self) -> str:
        return self.webhook["clientConfig"]["service"]["path"]

    def takes(self, request: Json) -> bool:
        return self._has_rule(request) and self._selects(request["namespace"]) and self._matches(request)

    def _has_rule(self, request: Json) -> bool:
        resource, kind = request["resource"]["resource"], request["resource"]
        if request.get("subResource"):
            resource += "/" + request["subResource"]
        return any(
            kind["group"] in rule["apiGroups"]
            and kind["version"] in rule["apiVersions"]
            and request["operation"] in rule["operations"]
            and resource in rule["resources"]
            for rule in self.webhook["rules"]
        )

    def _selects(self, namespace: str) -> bool:
        (expression,) = self.webhook["namespaceSelector"]["matchExpressions"]
        assert (expression["key"], expression["operator"]) == ("kubernetes.io/metadata.name", "NotIn")
        return namespace not in expression["values"]

    def _matches(self, request: Json) -> bool:
        """Judge the conditions in the order of the API server: one that is false wins over one that fails."""
        data = {"object": request.get("object"), "oldObject": request.get("oldObject"), "request": request}
        found = [condition.eval(data=data) for condition in self.conditions]
        if any(value.type() == cel.Type.BOOL and value.value() is False for value in found):
            return False
        failed = [value.value() for value in found if value.type() != cel.Type.BOOL]
        assert not failed, f"{self.name}: {failed}"
        return True


def entries(configurations: list[Json]) -> list[Entry]:
    """Compile every condition, as the API server does when a configuration is stored."""
    return [
        Entry(webhook, [_CEL.compile(condition["expression"]) for condition in webhook["matchConditions"]])
        for configuration in configurations
        for webhook in configuration["webhooks"]
    ]


def called(known: list[Entry], request: Json, path: str) -> set[str]:
    """The entries that send a request to a path."""
    return {entry.name for entry in known if entry.path == path and entry.takes(request)}
