"""Many small cases in one test: a test of pytest costs more than most of the cases, and each process collects all tests."""

import functools
import inspect
from collections.abc import Callable, Iterable
from typing import Any

import pytest

Test = Callable[..., None]
Case = tuple[str, tuple[Any, ...]]


def check_each(check: Test, cases: Iterable[Case]) -> None:
    """Check all cases, each with a label and its values.

    Raises:
        ExceptionGroup: what the cases that fail raised, with their labels as notes. A case that is skipped fails, too: a skip
            would end the test, and no later case would be checked.
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
    """As `pytest.mark.parametrize`, but makes one test; its fixtures are shared by all cases."""
    keys = [name.strip() for name in (names.split(",") if isinstance(names, str) else names)]
    listed = list(cases)
    assert listed
    labels = map(ids or repr, listed) if ids is None or callable(ids) else ids
    known = [
        (str(label)[:200], (case,) if len(keys) == 1 else tuple(case))
        for label, case in zip(labels, listed, strict=True)
    ]

    def decorate(test: Test) -> Test:
        @functools.wraps(test)
        def run(**fixtures: Any) -> None:
            check_each(lambda *values: test(**fixtures, **dict(zip(keys, values, strict=True))), known)

        signature = inspect.signature(test)
        fixtures = [parameter for name, parameter in signature.parameters.items() if name not in keys]
        run.__signature__ = signature.replace(parameters=fixtures)  # type: ignore[attr-defined]
        return run

    return decorate
