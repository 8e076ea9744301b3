"""The net, evaluated as the API server evaluates it: conditions, then variables, then validations."""

from dataclasses import dataclass
from typing import Any

import pytest

from tests.deploy.calling import Entry, Json
from webhook.devices.config import DeviceConfig
from webhook.manifests.net.policies import admission_policies
from webhook.policy.policy import Policy

cel = pytest.importorskip("cel_expr_python.cel", reason="there is no CEL library for this platform")
strings = pytest.importorskip("cel_expr_python.ext.ext_strings")


def _sum(values: list[Any]) -> int:
    return sum(value if isinstance(value, int) else value.value() for value in values)


_SUM = cel.Overload("list_sum", cel.Type.INT, [cel.Type.List(cel.Type.INT)], True, impl=_sum)
_KUBERNETES = cel.CelExtension("kubernetes", [cel.FunctionDecl("sum", [_SUM])])
_VARIABLES = ("object", "oldObject", "request", "variables")
CEL = cel.NewEnv(variables=dict.fromkeys(_VARIABLES, cel.Type.DYN), extensions=[strings.ExtStrings(), _KUBERNETES])


@dataclass(frozen=True)
class AdmissionPolicy:
    """An admission policy, compiled.

    Attributes:
        entry: which requests it reads.
        variables: in order, all of them evaluated, so that none may fail.
        expression, message: of its only validation.
    """

    entry: Entry
    variables: list[tuple[str, Any]]
    expression: Any
    message: Any

    def refusal(self, request: Json) -> str:
        """The message of the refusal; empty if the request passes."""
        if not self.entry.takes(request):
            return ""
        known: Json = {}
        data = {"object": request.get("object"), "oldObject": request.get("oldObject"), "request": request}
        for name, expression in self.variables:
            known[name] = _value(expression, data | {"variables": known}, name)
        data["variables"] = known
        passes = _value(self.expression, data, "the validation")
        assert isinstance(passes, bool)
        return "" if passes else str(_value(self.message, data, "the message"))


def _value(expression: Any, data: Json, what: str) -> Any:
    found = expression.eval(data=data)
    assert found.type() != cel.Type.ERROR, f"{what}: {found.value()}"
    return found.plain_value()


def compiled(policies: list[Json]) -> list[AdmissionPolicy]:
    """Compile every expression of some admission policies."""
    found = []
    for document in policies:
        if document["kind"] == "ValidatingAdmissionPolicy":
            spec = document["spec"]
            (validation,) = spec["validations"]
            webhook = spec["matchConstraints"] | {
                "name": document["metadata"]["name"],
                "rules": spec["matchConstraints"]["resourceRules"],
            }
            entry = Entry(webhook, [CEL.compile(each["expression"]) for each in spec["matchConditions"]])
            variables = [(each["name"], CEL.compile(each["expression"])) for each in spec["variables"]]
            expression, message = (CEL.compile(validation[key]) for key in ("expression", "messageExpression"))
            found.append(AdmissionPolicy(entry, variables, expression, message))
    return found


class Net:
    """The net of some settings."""

    def __init__(self, net: str, config: DeviceConfig, policy: Policy) -> None:
        self._policies = compiled(admission_policies(config, policy, net))

    def refusal(self, request: Json) -> str:
        """The message of the refusal; empty if the request passes. At most one policy reads a request."""
        found = [policy.refusal(request) for policy in self._policies]
        assert sum(map(bool, found)) <= 1
        return "".join(found)
