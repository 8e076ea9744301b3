"""The fallback policies, evaluated as the API server evaluates them: conditions, then the variables of the validation."""

import re
from functools import cache
from typing import Any

import pytest

from tests.deploy.calling import Entry, Json
from tests.deploy.clusters import USUAL
from webhook.devices.config import DeviceConfig
from webhook.manifests.fallback.policies import admission_policies
from webhook.pod.quantity import parse
from webhook.policy.policy import Policy, default_policy

cel = pytest.importorskip("cel_expr_python.cel", reason="there is no CEL library for this platform")
bindings = pytest.importorskip("cel_expr_python.ext.ext_bindings")
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
_CEL = cel.NewEnv(
    variables=dict.fromkeys(("object", "oldObject", "request"), cel.Type.DYN),
    extensions=[strings.ExtStrings(), bindings.ExtBindings(), _KUBERNETES],
)


_READ = re.compile(r"\bvariables\.(\w+)")


@cache
def _compile(expression: str) -> Any:
    """Fallback policies of different settings have most expressions in common."""
    return _CEL.compile(expression)


def shown(sentence: str) -> str:
    """A sentence in which the characters that JSON and CEL escape differently are alike."""
    return re.sub(r"\\u[0-9a-f]{4}|\\.|[^ -~]", "?", sentence)


class AdmissionPolicy:
    """An admission policy, compiled: which requests it reads, and the message of its only validation."""

    def __init__(self, policy: Json) -> None:
        spec = policy["spec"]
        constraints = spec["matchConstraints"]
        matched = {"name": policy["metadata"]["name"], "rules": constraints["resourceRules"]}
        self._entry = Entry(constraints | matched | {"matchConditions": spec["matchConditions"]})
        self._refusal = _compile(_with_variables(spec))

    def refusal(self, request: Json) -> str:
        """The message of the refusal; empty if the request passes."""
        if not self._entry.takes(request):
            return ""
        data = {"object": request.get("object"), "oldObject": request.get("oldObject"), "request": request}
        found = self._refusal.eval(data=data)
        assert found.type() == _STRING, found.value()
        return str(found.value())


def _with_variables(spec: Json) -> str:
    """The refusal by the only validation, with all variables, none of which may fail.

    Those that read none of the others are bound together, then those that read these: the library limits the depth of an
    expression. One by one, each evaluation would convert its data anew.
    """
    (validation,) = spec["validations"]
    depth: dict[str, int] = {}
    for variable in spec["variables"]:
        depth[variable["name"]] = 1 + max((depth[name] for name in _READ.findall(variable["expression"])), default=0)
    text = f"{validation['expression']} ? '' : {validation['messageExpression']}"
    for level in range(max(depth.values()), 0, -1):
        fields = [
            f'"{each["name"]}": dyn({each["expression"]})' for each in spec["variables"] if depth[each["name"]] == level
        ]
        text = f"cel.bind(variables_{level}, {{{', '.join(fields)}}}, {text})"
    return _READ.sub(lambda found: f"variables_{depth[found[1]]}.{found[1]}", text)


class FallbackPolicies:
    """The fallback policies of some settings."""

    def __init__(self, config: DeviceConfig, policy: Policy) -> None:
        self._policies = [AdmissionPolicy(one) for one in admission_policies(config, policy)[::2]]

    def refusal(self, request: Json) -> str:
        """The message of the refusal; empty if the request passes. At most one policy reads a request."""
        found = [policy.refusal(request) for policy in self._policies]
        assert sum(map(bool, found)) <= 1
        return "".join(found)


@cache
def usual_fallback() -> FallbackPolicies:
    """Those of the default policy."""
    return FallbackPolicies(USUAL.snapshot.config, default_policy())
