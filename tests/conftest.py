"""For all tests: how many run at a time, and how many examples a property tries.

Property tests have no deadline: on a busy machine, an example may take long.

HYPOTHESIS_PROFILE=nightly tries forty times as many examples as `quick`, and new ones each time; see tests/examples.py.
"""

import gc
import os

import pytest
import yaml
from hypothesis import HealthCheck, settings

from tests.fork_server import import_all

# Collection makes a million objects, and hardly one of them is garbage: looking for it would take a third of the time.
gc.disable()

# `yaml.safe_load` of the tests: libyaml reads the same ten times as fast, and each process reads all cases.
yaml.SafeLoader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

# The same examples in each run, with the hash seed of `make test`: a change of the code alone decides whether the tests pass.
settings.register_profile(
    "quick", max_examples=25, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("nightly", settings.get_profile("quick"), max_examples=1000, derandomize=False)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "quick"))


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--ledger", metavar="ROW", default="", help="write the result into this row of tests/ledger.yaml")


def pytest_collection_finish() -> None:
    """Load what else tests would load, in the order in which they happen to run: Hypothesis takes constants from all modules.

    From here on, the garbage collector looks for what tests leave, and not at the tests themselves.
    """
    import_all()
    gc.freeze()
    gc.enable()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """Two processes a core, since many tests wait for a server or a browser.

    A container sees all cores of its machine, and each process takes a quarter of a gigabyte: 16 at most.
    """
    return min(16, 2 * (os.cpu_count() or 1))
