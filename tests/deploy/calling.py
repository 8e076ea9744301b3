"""Which entries of the webhook configurations an API server would call for a request."""

from functools import cache
from typing import Any

import pytest

cel = pytest.importorskip("cel_expr_python.cel", reason="there is no CEL library for this platform")

Json = dict[str, Any]

_CEL = cel.NewEnv(variables=dict.fromkeys(("object", "oldObject", "request"), cel.Type.DYN))


@cache
def _compile(expression: str) -> Any:
    return _CEL.compile(expression)


class Entry:
    """An entry with its conditions, compiled, as the API server does when a configuration is stored."""

    def __init__(self, webhook: Json) -> None:
        self.webhook = webhook
        self._conditions = [_compile(condition["expression"]) for condition in webhook["matchConditions"]]

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
        if "namespaceSelector" not in self.webhook or not namespace:
            return True
        (expression,) = self.webhook["namespaceSelector"]["matchExpressions"]
        assert expression["key"] == "kubernetes.io/metadata.name"
        return (namespace in expression["values"]) is {"In": True, "NotIn": False}[expression["operator"]]

    def _matches(self, request: Json) -> bool:
        """Judge the conditions in the order of the API server: one that is false wins over one that fails."""
        data = {"object": request.get("object"), "oldObject": request.get("oldObject"), "request": request}
        activation = _CEL.Activation(data)  # each condition by itself would convert the data anew
        failed = []
        for condition in self._conditions:
            found = condition.eval(activation=activation)
            if found.type() != cel.Type.BOOL:
                failed.append(found.value())
            elif not found.value():
                return False
        assert not failed, f"{self.name}: {failed}"
        return True


def entries(configurations: list[Json]) -> list[Entry]:
    return [Entry(webhook) for configuration in configurations for webhook in configuration["webhooks"]]


def called(known: list[Entry], request: Json, path: str) -> set[str]:
    """The entries that send a request to a path."""
    return {entry.name for entry in known if entry.path == path and entry.takes(request)}
