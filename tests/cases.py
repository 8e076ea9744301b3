"""Many small cases in one test, since pytest takes longer to collect and set up a test than to run most of the cases."""

import functools
import inspect
from collections.abc import Callable, Iterable
from typing import Any

import pytest

Test = Callable[..., None]
Case = tuple[str, tuple[Any, ...]]


def check_each(check: Test, cases: Iterable[Case]) -> None:
    """Check all cases, each with a label and values.

    Raises:
        ExceptionGroup: the exceptions of the failed cases, with their labels as notes. A skipped case fails, too, because a
            skip would end the test before the later cases.
    """
    failed: list[Exception] = []
    for label, values in cases:
        try:
            check(*values)
        except pytest.skip.Exception as skipped:
            failed.append(AssertionError(f"{label}: skipped: {skipped}"))
        except Exception as error:  # noqa: BLE001
            error.add_note(f"in the case: {label}")
            failed.append(error)
    if failed:
        raise ExceptionGroup(f"{len(failed)} cases fail", failed)


def each_case(names: str | tuple[str, ...], cases: Iterable[Any], ids: Any = None) -> Callable[[Test], Test]:
    """Like `pytest.mark.parametrize`, but as one test; all cases share its fixtures."""
    keys = [name.strip() for name in (names.split(",") if isinstance(names, str) else names)]
    case_list = list(cases)
    assert case_list
    labels = map(ids or repr, case_list) if ids is None or callable(ids) else ids
    labelled = [
        (str(label)[:200], (case,) if len(keys) == 1 else tuple(case))
        for label, case in zip(labels, case_list, strict=True)
    ]

    def decorate(test: Test) -> Test:
        @functools.wraps(test)
        def run(**fixtures: Any) -> None:
            check_each(lambda *values: test(**fixtures, **dict(zip(keys, values, strict=True))), labelled)

        signature = inspect.signature(test)
        fixtures = [parameter for name, parameter in signature.parameters.items() if name not in keys]
        run.__signature__ = signature.replace(parameters=fixtures)  # type: ignore[attr-defined]
        return run

    return decorate
