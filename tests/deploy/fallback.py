"""The fallback policies, evaluated as the API server evaluates it: conditions, then variables, then validations."""

import re
from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar

import pytest

from tests.deploy.calling import Entry, Json
from webhook.devices.config import DeviceConfig
from webhook.manifests.fallback.policies import admission_policies
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
        _function("isInteger", _BOOL, [_STRING], _is_integer),
        _function("asInteger", _INT, [_STRING], _number),
    ],
)
_VARIABLES = ("object", "oldObject", "request", "variables")
CEL = cel.NewEnv(variables=dict.fromkeys(_VARIABLES, cel.Type.DYN), extensions=[strings.ExtStrings(), _KUBERNETES])


@cache
def _compile(expression: str) -> Any:
    """Fallback policies of different settings have most expressions in common."""
    return CEL.compile(expression)


@cache
def _read_by(expression: str) -> frozenset[str]:
    """The variables that an expression reads."""
    return frozenset(re.findall(r"\bvariables\.(\w+)", expression))


class Expression:
    """A compiled expression."""

    def __init__(self, text: str) -> None:
        self._compiled = _compile(text)
        self._reads = _read_by(text)

    def value(self, data: Json, what: str) -> Any:
        """Its value, which is no error.

        It is given only the variables that it reads: the library converts all that it is given, each time.
        """
        variables = {name: value for name, value in data["variables"].items() if name in self._reads}
        found = self._compiled.eval(data=data | {"variables": variables})
        assert found.type() != cel.Type.ERROR, f"{what}: {found.value()}"
        return found.plain_value()


def shown(sentence: str) -> str:
    """A sentence in which the characters that JSON and CEL escape differently are alike."""
    return re.sub(r"\\u[0-9a-f]{4}|\\.|[^ -~]", "?", sentence)


@dataclass(frozen=True)
class AdmissionPolicy:
    """An admission policy, compiled.

    Attributes:
        entry: which requests it reads.
        variables: in order, all of them evaluated, so that none may fail.
        expression, message: of its only validation.
    """

    entry: Entry
    variables: list[tuple[str, Expression]]
    expression: Expression
    message: Expression

    def refusal(self, request: Json) -> str:
        """The message of the refusal; empty if the request passes."""
        if not self.entry.takes(request):
            return ""
        data = _evaluated(self.variables, request)
        passes = self.expression.value(data, "the validation")
        assert isinstance(passes, bool)
        return "" if passes else str(self.message.value(data, "the message"))


def _evaluated(variables: list[tuple[str, Expression]], request: Json) -> Json:
    """What expressions read, with the variables in their order."""
    known: Json = {}
    data = {"object": request.get("object"), "oldObject": request.get("oldObject"), "request": request}
    data["variables"] = known
    for name, expression in variables:
        known[name] = expression.value(data, name)
    return data


def _compiled(policy: Json) -> AdmissionPolicy:
    spec = policy["spec"]
    (validation,) = spec["validations"]
    webhook = spec["matchConstraints"] | {
        "name": policy["metadata"]["name"],
        "rules": spec["matchConstraints"]["resourceRules"],
    }
    entry = Entry(webhook, [_compile(each["expression"]) for each in spec["matchConditions"]])
    variables = [(each["name"], Expression(each["expression"])) for each in spec["variables"]]
    expression, message = (Expression(validation[key]) for key in ("expression", "messageExpression"))
    return AdmissionPolicy(entry, variables, expression, message)


class FallbackPolicies:
    """The fallback policies of some settings."""

    _rendered: ClassVar[dict[tuple[str, str], list[AdmissionPolicy]]] = {}

    def __init__(self, config: DeviceConfig, policy: Policy) -> None:
        settings = repr(config), policy.digest
        if settings not in self._rendered:
            policies = admission_policies(config, policy)[::2]
            self._rendered[settings] = [_compiled(one) for one in policies]
        self._policies = self._rendered[settings]

    def refusal(self, request: Json) -> str:
        """The message of the refusal; empty if the request passes. At most one policy reads a request."""
        found = [policy.refusal(request) for policy in self._policies]
        assert sum(map(bool, found)) <= 1
        return "".join(found)
