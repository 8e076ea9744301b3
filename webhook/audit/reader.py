"""Decisions one by one out of audit logs; what is no line of them is skipped and counted."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from webhook.audit.decision import Decision, parse_decision
from webhook.audit.streams import Complain, Lines, Source, chunks, open_sources
from webhook.errors import ConfigError

GIVE_UP = 16 << 20  # bytes without one decision: whatever this is, it is no audit log


@dataclass(slots=True)
class Skipped:
    """How many lines are no decisions.

    Attributes:
        foreign: something else stands there.
        truncated: files end within a line: it is being written, or its writer died.
        too_long: lines that the webhook would not have written.
    """

    foreign: int = 0
    truncated: int = 0
    too_long: int = 0

    @property
    def total(self) -> int:
        """All of them."""
        return self.foreign + self.truncated + self.too_long


@dataclass(slots=True)
class Reader:
    """Reads audit logs.

    Attributes:
        complain: is told of files that cannot be read, wholly or in part; the others are read all the same.
        skipped: what was passed over so far.
    """

    complain: Complain
    skipped: Skipped = field(default_factory=Skipped)
    _sources: list[Source] = field(default_factory=list)

    @property
    def share(self) -> float | None:
        """What part is read, from 0 to 1; None if that is not known."""
        size = sum(source.size for source in self._sources)
        if not size or not all(source.size for source in self._sources):
            return None
        return min(sum(source.position for source in self._sources) / size, 1.0)

    def read(self, paths: Iterable[str]) -> Iterator[Decision]:
        """All decisions of some files in order, each file with its rotated ones before it."""
        self._sources = open_sources(paths, self.complain)
        for source in self._sources:
            try:
                yield from self._read(source)
            except ConfigError as error:
                self.complain(str(error))

    def _read(self, source: Source) -> Iterator[Decision]:
        lines = Lines()
        idle = 0
        for chunk in chunks(source):
            idle += len(chunk)
            for line in lines.feed(chunk):
                decision = parse_decision(line)
                if decision is not None:
                    idle = 0
                    yield decision
                elif line:
                    self.skipped.foreign += 1
            if idle > GIVE_UP:
                raise ConfigError(f"{source.name}: no audit line in {GIVE_UP >> 20} MiB, so the rest is not read")
        if lines.rest:  # a whole line, perhaps, whose line break is still to come
            decision = parse_decision(lines.rest)
            if decision is None:
                self.skipped.truncated += 1
            else:
                yield decision
        self.skipped.too_long += lines.dropped
