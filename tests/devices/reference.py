"""A slow reference implementation of nodeSelector and required node affinity, written from the Kubernetes API alone."""

OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")
INT64 = range(-(2**63), 2**63)


def matches(spec, name, labels):
    """Whether a node matches a pod's nodeSelector and required node affinity, which the API server has validated."""
    return _matches(spec, name, labels, _term)


def might_match(spec, name, labels):
    """Whether a node can match a selector that is not validated: a malformed part can match every node."""
    return _matches(spec, name, labels, _possible_term)


def _matches(spec, name, labels, term_holds):
    selector = spec.get("nodeSelector")
    for key, value in selector.items() if isinstance(selector, dict) else ():
        if key and isinstance(value, str) and labels.get(key) != value:
            return False
    required = spec.get("affinity")
    for key in ("nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms"):
        required = required.get(key) if isinstance(required, dict) else None
    return not isinstance(required, list) or not required or any(term_holds(term, name, labels) for term in required)


def _term(term, name, labels):
    expressions, fields = term.get("matchExpressions") or [], term.get("matchFields") or []
    if not expressions and not fields:
        return False
    return all(_holds(each, labels) for each in expressions) and all(
        _holds(each, {"metadata.name": name}) for each in fields
    )


def _possible_term(term, name, labels):
    if not isinstance(term, dict):
        return True
    parts = [term.get("matchExpressions"), term.get("matchFields")]
    if all(part is None or part == [] for part in parts):
        return False
    expressions, fields = (
        [each for each in part if _is_valid(each)] if isinstance(part, list) else [] for part in parts
    )
    fields = [each for each in fields if each["key"] == "metadata.name" and _is_valid_field(each)]
    return _term({"matchExpressions": expressions, "matchFields": fields}, name, labels) or not (expressions or fields)


def _holds(expression, labels):
    operator, values = expression["operator"], expression.get("values") or []
    is_present = expression["key"] in labels
    value = labels.get(expression["key"], "")
    if operator == "In":
        return is_present and value in values
    if operator == "NotIn":
        return not is_present or value not in values
    if operator in ("Exists", "DoesNotExist"):
        return is_present == (operator == "Exists")
    number, limit = _integer(value), _integer(values[0])
    if not is_present or number is None:
        return False
    return number > limit if operator == "Gt" else number < limit


def _is_valid(expression):
    """Whether the API server accepts an expression."""
    if not isinstance(expression, dict) or not isinstance(expression.get("key"), str) or not expression["key"]:
        return False
    operator, values = expression.get("operator"), expression.get("values")
    values = [] if values is None else values
    if not isinstance(operator, str) or operator not in OPERATORS or not isinstance(values, list):
        return False
    if not all(isinstance(value, str) for value in values):
        return False
    if operator in ("In", "NotIn"):
        return bool(values)
    if operator in ("Gt", "Lt"):
        return len(values) == 1 and _integer(values[0]) is not None
    return not values


def _is_valid_field(expression):
    return expression["operator"] in ("In", "NotIn") and len(expression["values"]) == 1


def _integer(text):
    """Go's ParseInt to the base 10."""
    digits = text[1:] if text[:1] in ("+", "-") else text
    if not digits or not set(digits) <= set("0123456789"):
        return None
    return int(text) if int(text) in INT64 else None
