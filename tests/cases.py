"""Many small cases in one test: a test of pytest costs more than most of the cases, and each process collects all tests."""

import functools
import inspect
from collections.abc import Callable, Iterable
from typing import Any

Test = Callable[..., None]
Case = tuple[str, tuple[Any, ...]]


def check_each(check: Test, cases: Iterable[Case]) -> None:
    """Check all cases, each with a label and its values.

    Raises:
        ExceptionGroup: what the cases that fail raised, with their labels as notes.
    """
    failed = []
    for label, values in cases:
        try:
            check(*values)
        except Exception as error:  # noqa: BLE001
            error.add_note(f"in the case: {label}")
            failed.append(error)
    if failed:
        raise ExceptionGroup(f"{len(failed)} cases fail", failed)


def each_case(names: str | tuple[str, ...], cases: Iterable[Any], ids: Any = None) -> Callable[[Test], Test]:
    """As `pytest.mark.parametrize`, but makes one test; its fixtures are shared by all cases."""
    keys = [name.strip() for name in (names.split(",") if isinstance(names, str) else names)]
    known = [_case(case, len(keys), ids, number) for number, case in enumerate(cases)]
    assert known

    def decorate(test: Test) -> Test:
        @functools.wraps(test)
        def run(**fixtures: Any) -> None:
            check_each(lambda *values: test(**fixtures, **dict(zip(keys, values, strict=True))), known)

        signature = inspect.signature(test)
        fixtures = [parameter for name, parameter in signature.parameters.items() if name not in keys]
        run.__signature__ = signature.replace(parameters=fixtures)  # type: ignore[attr-defined]
        return run

    return decorate


def _case(case: Any, count: int, ids: Any, number: int) -> Case:
    """A case as `pytest.mark.parametrize` takes it: a value, several values, or a `pytest.param`."""
    values, label = getattr(case, "values", None), getattr(case, "id", None)
    if callable(values) or values is None:  # no pytest.param
        values, label = ((case,) if count == 1 else tuple(case)), None
    if ids is not None:
        label = ids(case) if callable(ids) else list(ids)[number]
    return label or repr(values)[:200], tuple(values)
