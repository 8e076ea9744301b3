"""The net, evaluated as the API server evaluates it: conditions, then variables, then validations."""

import json
from dataclasses import dataclass
from functools import cache
from typing import Any

import pytest

from tests.deploy.calling import Entry, Json
from webhook.devices.config import DeviceConfig
from webhook.manifests.net.policies import admission_policies
from webhook.pod.quantity import parse
from webhook.policy.policy import Policy

cel = pytest.importorskip("cel_expr_python.cel", reason="there is no CEL library for this platform")
strings = pytest.importorskip("cel_expr_python.ext.ext_strings")


def _sum(values: list[Any]) -> int:
    return sum(value if isinstance(value, int) else value.value() for value in values)


def _function(name: str, returned: Any, parameters: list[Any], impl: Any, *, member: bool = True) -> Any:
    return cel.FunctionDecl(name, [cel.Overload(f"{name}_overload", returned, parameters, member, impl=impl)])


def _number(quantity: Any) -> Any:
    return parse(quantity if isinstance(quantity, str) else quantity.value())


def _is_integer(quantity: Any) -> bool:
    number = _number(quantity)
    return isinstance(number, int) and number in range(-(2**63), 2**63)


# Quantities stay the texts that they are.
_INT, _BOOL, _STRING = cel.Type.INT, cel.Type.BOOL, cel.Type.STRING
_KUBERNETES = cel.CelExtension(
    "kubernetes",
    [
        _function("sum", _INT, [cel.Type.List(_INT)], _sum),
        _function("quantity", _STRING, [_STRING], lambda quantity: quantity, member=False),
        _function(
            "sign", _INT, [_STRING], lambda quantity: (_number(quantity) > 0) - (_number(quantity) < 0), member=False
        ),
        _function("isInteger", _BOOL, [_STRING], _is_integer),
        _function("asInteger", _INT, [_STRING], _number),
        _function("isGreaterThan", _BOOL, [_STRING, _STRING], lambda one, other: _number(one) > _number(other)),
    ],
)
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
    return [_compiled(json.dumps(one)) for one in policies if one["kind"] == "ValidatingAdmissionPolicy"]


@cache
def _compiled(document: str) -> AdmissionPolicy:
    policy = json.loads(document)
    spec = policy["spec"]
    (validation,) = spec["validations"]
    webhook = spec["matchConstraints"] | {
        "name": policy["metadata"]["name"],
        "rules": spec["matchConstraints"]["resourceRules"],
    }
    entry = Entry(webhook, [CEL.compile(each["expression"]) for each in spec["matchConditions"]])
    variables = [(each["name"], CEL.compile(each["expression"])) for each in spec["variables"]]
    expression, message = (CEL.compile(validation[key]) for key in ("expression", "messageExpression"))
    return AdmissionPolicy(entry, variables, expression, message)


class Net:
    """The net of some settings."""

    def __init__(self, net: str, config: DeviceConfig, policy: Policy) -> None:
        self._policies = compiled(admission_policies(config, policy, net))

    def refusal(self, request: Json) -> str:
        """The message of the refusal; empty if the request passes. At most one policy reads a request."""
        found = [policy.refusal(request) for policy in self._policies]
        assert sum(map(bool, found)) <= 1
        return "".join(found)
