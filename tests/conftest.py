"""Property tests are judged by their answers: on a busy machine an example may take its time.

HYPOTHESIS_PROFILE=nightly tries ten times as many examples, where a test does not fix their number.
"""

import os

from hypothesis import HealthCheck, settings

settings.register_profile("ci", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("nightly", settings.get_profile("ci"), max_examples=1000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))
