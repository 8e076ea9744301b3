"""No sequence of runs, crashes and outside harm makes a published bundle distrust a leaf that a pod may serve."""

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

from certs import ensure, pki, verify
from certs.plan import AUTHORITY, SERVING, Plan, plan
from certs.state import SERVE_LAG, Configuration, Desired, Secret, observe
from tests.certs.simulated_cluster import FRESH, HOSTS, KINDS, START, Process, World, run
from tests.examples import examples

FOREIGN_CA = pki.make_ca("somebody else's CA", START - timedelta(days=1))
FOREIGN = pki.make_leaf(FOREIGN_CA, HOSTS, START - timedelta(days=1))
RUBBISH = [b"", b"rubbish", b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", FOREIGN_CA.certificate]

DESIRED_STATES = st.sampled_from([Desired(HOSTS), Desired((*HOSTS, "other.vgpu-webhook.svc"))])
MOMENTS = [timedelta(seconds=1), timedelta(seconds=40), timedelta(minutes=2), timedelta(minutes=59), timedelta(hours=1)]
AGES = [timedelta(days=1), timedelta(days=31), timedelta(days=61), timedelta(days=100), timedelta(days=2500)]
PROCESSES = st.integers(0, 1)
STEPS = st.integers(1, 25)  # a whole change of a CA has some twenty reads and writes


class Cluster(RuleBasedStateMachine):
    """Two processes, step by step, in a cluster where time passes.

    Here a process may sleep for hours between reading and writing; only where outsiders delete what they please does
    it have to be quick.
    """

    fresh = timedelta.max

    def __init__(self):
        super().__init__()
        self.world = World()
        self.running = [None, None]
        self.checked = None

    @initialize(kinds=st.sampled_from([KINDS, KINDS[:1], ()]), installed=st.booleans())
    def applied(self, kinds, installed):
        for kind in kinds:
            self.world.put(kind, Configuration((b"", b"")), ours=False)
        self.world.outsiders = 0
        if installed:
            self.run(Desired(HOSTS), rotate=False)
            self.world.time += 2 * SERVE_LAG

    @rule(process=PROCESSES, desired=DESIRED_STATES, rotate=st.booleans(), steps=STEPS)
    def begin(self, process, desired, rotate, steps):
        """Begin a run; one that went on is killed."""
        self.kill(process)
        self.running[process] = Process(self.world, desired, rotate=rotate, fresh=self.fresh)
        self.go_on(process, steps)

    @rule(process=PROCESSES, steps=STEPS)
    def go_on(self, process, steps):
        for _ in range(steps):
            if self.running[process] and not self.running[process].step():
                self.running[process] = None
            self.trusted()

    def kill(self, process):
        if self.running[process]:
            self.running[process].kill()
            self.running[process] = None

    @rule(desired=DESIRED_STATES, rotate=st.booleans())
    def run(self, desired, rotate):
        """A whole run: all is in order afterwards."""
        run(self.world, desired, rotate=rotate, pause=self.trusted)
        self.trusted()
        observed = observe(self.world.state, self.world.now, desired)
        assert plan(observed).actions == ()
        assert observed.leaf_works, observed.leaf_problem
        published = [b for found in self.world.state.configurations.values() for b in found.bundles]
        for bundle in [*published, self.world.state.serving.data["ca.crt"]]:
            trusted = verify.certificates(bundle)
            assert verify.trust_problem(trusted, observed.leaf.certificate, HOSTS[0], self.world.now) is None

    @rule(desired=DESIRED_STATES, rotate=st.booleans(), hours=st.integers(1, 3))
    def run_every_hour(self, desired, rotate, hours):
        for hour in range(hours):
            self.run(desired, rotate=rotate and hour == 0)
            self.world.time += SERVE_LAG
            self.trusted()

    @rule(desired=DESIRED_STATES, rotate=st.booleans(), steps=STEPS, others=DESIRED_STATES, changes=st.integers(1, 2))
    def overtaken(self, desired, rotate, steps, others, changes):
        """A run sleeps somewhere, others change the CA, it goes on."""
        self.begin(0, desired, rotate, steps)
        for _ in range(changes):
            self.run_every_hour(others, rotate=True, hours=3)
        self.go_on(0, 100)

    @rule(span=st.sampled_from(MOMENTS) | st.sampled_from(AGES))
    def time_passes(self, span):
        self.world.time += span

    def teardown(self):
        """Whatever it was, it is over after some hours: one CA, and every bundle contains it alone."""
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
    def trusted(self):
        world = self.world
        if self.checked == (world.writes, world.time, world.jump):
            return
        self.checked = (world.writes, world.time, world.jump)
        leaves = world.served() - world.lost
        for kind in KINDS:
            seen = world.seen(kind)
            if world.outsiders or world.time < world.urgent_until:  # then only what is published at this instant
                found = world.history.get(kind)
                seen = list(found[-1].value.bundles) if found and found[-1].ours else []
            for bundle in seen:
                for leaf in leaves:
                    assert verify.issuer(leaf, verify.certificates(bundle)), f"{kind} distrusts a leaf that is served"


class HostileCluster(Cluster):
    """The same, with outsiders who delete, overwrite, tear apart and restore, and clocks that are set back."""

    fresh = FRESH

    @rule(victim=st.sampled_from([AUTHORITY, SERVING, *KINDS]))
    def delete(self, victim):
        if self.world.get(victim) is not None:
            self.world.put(victim, None, ours=False)

    @rule(kind=st.sampled_from(KINDS), bundle=st.sampled_from(RUBBISH))
    def overwrite_bundles(self, kind, bundle):
        self.world.put(kind, Configuration((bundle, bundle)), ours=False)

    @rule(victim=st.sampled_from([AUTHORITY, SERVING]), data=st.data())
    def tear(self, victim, data):
        """One entry of a Secret becomes rubbish, another's, or nothing."""
        held = self.world.get(victim)
        if held is None or not held.data:
            return
        entries = {**held.data}
        entry, other = data.draw(st.sampled_from(sorted(entries))), data.draw(st.sampled_from(sorted(entries)))
        entries[entry] = [*RUBBISH, entries[other]][data.draw(st.integers(0, len(RUBBISH)))]
        self.world.put(victim, Secret(entries), ours=False)

    @rule()
    def serve_a_strangers_leaf(self):
        held = {"tls.crt": FOREIGN.certificate, "tls.key": FOREIGN.key, "ca.crt": FOREIGN_CA.certificate}
        self.world.put(SERVING, Secret(held), ours=False)

    @rule(victim=st.sampled_from([AUTHORITY, SERVING, *KINDS]), data=st.data())
    def restore(self, victim, data):
        values = [change.value for change in self.world.history.get(victim, []) if change.value is not None]
        if values:
            self.world.put(victim, values[data.draw(st.integers(0, len(values) - 1))], ours=False)

    @precondition(lambda self: self.world.jump > -timedelta(days=30))
    @rule(span=st.sampled_from([*MOMENTS, *AGES[:2]]))
    def clocks_are_set_back(self, span):
        self.world.jump -= span
        self.world.outsiders += 1


@pytest.mark.parametrize("machine, number", [(Cluster, 20), (HostileCluster, 30)], ids=["interrupted", "hostile"])
def test_every_leaf_that_is_served_is_trusted(machine, number, monkeypatch):
    monkeypatch.setattr(ensure, "PAUSE_SECONDS", 0.0)
    run_state_machine_as_test(machine, settings=settings(examples(number), stateful_step_count=15))
