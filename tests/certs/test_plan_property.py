"""A published bundle trusts every leaf that a pod may serve, after any sequence of runs, crashes and foreign writes."""

from datetime import timedelta

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from certs import pki, verify
from certs.plan import AUTHORITY, SERVING, Plan, plan
from certs.state import SERVE_LAG, Configuration, Desired, Secret, observe
from tests.certs.simulated_cluster import FRESH, HOSTS, KINDS, START, Process, World, run
from tests.examples import examples

FOREIGN_CA = pki.make_ca("another CA", START - timedelta(days=1))
FOREIGN = pki.make_leaf(FOREIGN_CA, HOSTS, START - timedelta(days=1))
GARBAGE = [b"", b"garbage", b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", FOREIGN_CA.certificate]

DESIRED_STATES = st.sampled_from([Desired(HOSTS), Desired((*HOSTS, "other.vgpu-webhook.svc"))])
MOMENTS = [timedelta(seconds=1), timedelta(seconds=40), timedelta(minutes=2), timedelta(minutes=59), timedelta(hours=1)]
AGES = [timedelta(days=1), timedelta(days=31), timedelta(days=61), timedelta(days=100), timedelta(days=2500)]
PROCESSES = st.integers(0, 1)
STEPS = st.integers(1, 25)  # a complete rotation has about twenty reads and writes


class Cluster(RuleBasedStateMachine):
    """Two processes that run step by step while time passes.

    A process may sleep for hours between a read and a write. `HostileCluster`, where other clients delete objects,
    limits that time.
    """

    fresh = timedelta.max

    def __init__(self):
        super().__init__()
        self.world = World()
        self.processes = [None, None]
        self.checked = None

    @initialize(kinds=st.sampled_from([KINDS, KINDS[:1], ()]), installed=st.booleans())
    def install(self, kinds, installed):
        for kind in kinds:
            self.world.put(kind, Configuration((b"", b"")), ours=False)
        self.world.foreign_writes = 0
        if installed:
            self.run(Desired(HOSTS), rotate=False)
            self.world.time += 2 * SERVE_LAG

    @rule(process=PROCESSES, desired=DESIRED_STATES, rotate=st.booleans(), steps=STEPS)
    def begin(self, process, desired, rotate, steps):
        """Begin a run; kill the previous run of this process."""
        self.kill(process)
        self.processes[process] = Process(self.world, desired, rotate=rotate, fresh=self.fresh)
        self.resume(process, steps)

    @rule(process=PROCESSES, steps=STEPS)
    def resume(self, process, steps):
        for _ in range(steps):
            if self.processes[process] and not self.processes[process].step():
                self.processes[process] = None
            self.check_trust()

    def kill(self, process):
        if self.processes[process]:
            self.processes[process].kill()
            self.processes[process] = None

    @rule(desired=DESIRED_STATES, rotate=st.booleans())
    def run(self, desired, rotate):
        """A complete run; afterwards nothing is left to do."""
        run(self.world, desired, rotate=rotate, pause=self.check_trust)
        self.check_trust()
        observed = observe(self.world.state, self.world.now, desired)
        assert plan(observed).actions == ()
        assert observed.leaf_works, observed.leaf_problem
        published = [b for changes in self.world.state.configurations.values() for b in changes.bundles]
        for bundle in [*published, self.world.state.serving.data["ca.crt"]]:
            trusted = verify.certificates(bundle)
            assert verify.trust_problem(trusted, observed.leaf.certificate, HOSTS[0], self.world.now) is None

    @rule(desired=DESIRED_STATES, rotate=st.booleans(), hours=st.integers(1, 3))
    def run_every_hour(self, desired, rotate, hours):
        for hour in range(hours):
            self.run(desired, rotate=rotate and hour == 0)
            self.world.time += SERVE_LAG
            self.check_trust()

    @rule(desired=DESIRED_STATES, rotate=st.booleans(), steps=STEPS, others=DESIRED_STATES, changes=st.integers(1, 2))
    def run_during_rotations(self, desired, rotate, steps, others, changes):
        """A run sleeps at some step while others rotate the CA, then continues."""
        self.begin(0, desired, rotate, steps)
        for _ in range(changes):
            self.run_every_hour(others, rotate=True, hours=3)
        self.resume(0, 100)

    @rule(span=st.sampled_from(MOMENTS) | st.sampled_from(AGES))
    def time_passes(self, span):
        self.world.time += span

    def teardown(self):
        """After some hours, only one CA is left, and every bundle contains only this CA."""
        self.kill(0)
        self.kill(1)
        for _ in range(6):
            self.run_every_hour(Desired(HOSTS), rotate=False, hours=1)
        observed = observe(self.world.state, self.world.now, Desired(HOSTS))
        assert observed.authority.next is None
        assert observed.signing_cas == (observed.authority.current,)
        assert observed.known_cas == (observed.authority.current.certificate,)
        assert verify.hosts(observed.leaf.certificate) == frozenset(HOSTS)
        assert not any(
            verify.renewal_due(one, self.world.now) for one in (*observed.known_cas, observed.leaf.certificate)
        )
        assert plan(observed) == Plan(())

    @invariant()
    def check_trust(self):
        world = self.world
        if self.checked == (world.writes, world.time, world.jump):
            return
        self.checked = (world.writes, world.time, world.jump)
        leaves = world.served_leaves() - world.lost
        for kind in KINDS:
            published_bundles = world.published_bundles(kind)
            if world.foreign_writes or world.time < world.urgent_until:  # then only the current bundles
                changes = world.history.get(kind)
                published_bundles = list(changes[-1].value.bundles) if changes and changes[-1].ours else []
            for bundle in published_bundles:
                for leaf in leaves:
                    assert verify.issuer(leaf, verify.certificates(bundle)), f"{kind} does not trust a served leaf"


class HostileCluster(Cluster):
    """The same, with other clients that delete, overwrite, corrupt and restore objects, and clocks that are set back."""

    fresh = FRESH

    @rule(victim=st.sampled_from([AUTHORITY, SERVING, *KINDS]))
    def delete(self, victim):
        if self.world.get(victim) is not None:
            self.world.put(victim, None, ours=False)

    @rule(kind=st.sampled_from(KINDS), bundle=st.sampled_from(GARBAGE))
    def overwrite_bundles(self, kind, bundle):
        self.world.put(kind, Configuration((bundle, bundle)), ours=False)

    @rule(victim=st.sampled_from([AUTHORITY, SERVING]), data=st.data())
    def corrupt(self, victim, data):
        """Replace one entry of a Secret by garbage, the content of another entry, or nothing."""
        secret = self.world.get(victim)
        if secret is None or not secret.data:
            return
        entries = {**secret.data}
        entry, other = data.draw(st.sampled_from(sorted(entries))), data.draw(st.sampled_from(sorted(entries)))
        entries[entry] = [*GARBAGE, entries[other]][data.draw(st.integers(0, len(GARBAGE)))]
        self.world.put(victim, Secret(entries), ours=False)

    @rule()
    def serve_a_foreign_leaf(self):
        secret = {"tls.crt": FOREIGN.certificate, "tls.key": FOREIGN.key, "ca.crt": FOREIGN_CA.certificate}
        self.world.put(SERVING, Secret(secret), ours=False)

    @rule(victim=st.sampled_from([AUTHORITY, SERVING, *KINDS]), data=st.data())
    def restore(self, victim, data):
        values = [change.value for change in self.world.history.get(victim, []) if change.value is not None]
        if values:
            self.world.put(victim, values[data.draw(st.integers(0, len(values) - 1))], ours=False)

    @precondition(lambda self: self.world.jump > -timedelta(days=30))
    @rule(span=st.sampled_from([*MOMENTS, *AGES[:2]]))
    def clocks_are_set_back(self, span):
        self.world.jump -= span
        self.world.foreign_writes += 1


@pytest.mark.parametrize("machine, number", [(Cluster, 20), (HostileCluster, 30)], ids=["interrupted", "hostile"])
def test_every_served_leaf_is_trusted(machine, number):
    run_state_machine_as_test(machine, settings=settings(examples(number), stateful_step_count=15))
