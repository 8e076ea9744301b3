"""Decisions as a long list keeps them: what is asked for often at hand, the rest compressed."""

import zlib
from collections.abc import Sequence
from datetime import datetime
from sys import getsizeof
from typing import NamedTuple

from webhook.audit.decision import Decision, parse_decision
from webhook.audit.filters import Filter
from webhook.outcome import Violation
from webhook.rules.base import Enforcement

BLOCK = 64  # lines: half as large again when compressed in blocks of 32, a tenth smaller in blocks of 128
BLOCK_BYTES = 256 << 10  # of lines; a longer line is a block of its own

_LEVEL = 1  # of zlib: twice as fast as the usual one, and a fifth larger
_ENTRY = 400  # bytes that an entry takes beside its texts
_FINDING = 80
_SHORT = 256  # characters; longer texts, which are nobody's name, are not shared
_SHORT_FINDINGS = 4096
_MAX_TEXTS = 16_384
_MAX_FINDINGS = 4096


class Entry(NamedTuple):
    """A decision without patch, request and digests.

    Attributes:
        number: its place in the journal, from 1.
        word: the outcome in one word.
        at, id, endpoint, operation, dry_run, user, namespace, kind, name, allowed, findings: as the decision has them.
        duration: in microseconds.
        enforcement: as the decision has it.
    """

    number: int
    at: datetime
    id: str
    endpoint: str
    operation: str
    dry_run: bool
    user: str
    namespace: str
    kind: str
    name: str
    allowed: bool
    findings: tuple[Violation, ...]
    word: str
    duration: int
    enforcement: Enforcement


class Block(NamedTuple):
    """Entries in a row, and their lines.

    Attributes:
        entries: at least one.
        oldest, newest: when the earliest and the latest of them was made.
        text: the lines compressed together, or as they are.
        weight: bytes of memory, about.
    """

    entries: Sequence[Entry]
    oldest: datetime
    newest: datetime
    text: bytes | Sequence[bytes]
    weight: int

    @property
    def first(self) -> int:
        """The number of the first entry."""
        return self.entries[0].number

    @property
    def last(self) -> int:
        """The number of the last entry."""
        return self.entries[-1].number

    def matches(self, wanted: Filter) -> list[Entry]:
        """The entries that are asked for, in order."""
        if (wanted.since and self.newest < wanted.since) or (wanted.until and self.oldest >= wanted.until):
            return []
        admits = wanted.admits
        return [entry for entry in self.entries if admits(entry)]

    def decisions(self, entries: Sequence[Entry]) -> list[Decision]:
        """Some entries in full."""
        text, first = self.text, self.first
        lines = zlib.decompress(text).split(b"\n") if isinstance(text, bytes) else text
        found = [parse_decision(lines[entry.number - first]) for entry in entries]
        return [decision for decision in found if decision is not None]  # each was one when it was read


class OpenBlock:
    """Takes decisions until it is full.

    Attributes:
        weight: bytes of memory, about.
    """

    def __init__(self, shared: "Shared") -> None:
        self.weight = 0
        self._shared = shared
        self._entries: list[Entry] = []
        self._lines: list[bytes] = []
        self._length = 0

    def __len__(self) -> int:
        return len(self._entries)

    def add(self, number: int, line: bytes, decision: Decision) -> None:
        """Take a decision and the line that it was read from."""
        entry, weight = self._shared.entry(number, decision)
        self._entries.append(entry)
        self._lines.append(line)
        self._length += len(line)
        self.weight += weight + len(line)

    def is_full(self, lines: int) -> bool:
        """Tell whether it is time to close it."""
        return len(self._entries) >= lines or self._length >= BLOCK_BYTES

    def seen(self) -> Block:
        """What there is so far; it must not be empty."""
        return self._block(tuple(self._lines), self.weight)

    def closed(self) -> Block:
        """All of it, compressed."""
        text = zlib.compress(b"\n".join(self._lines), _LEVEL)
        return self._block(text, self.weight - self._length + len(text))

    def _block(self, text: bytes | Sequence[bytes], weight: int) -> Block:
        times = [entry.at for entry in self._entries]
        return Block(tuple(self._entries), min(times), max(times), text, weight)


class Shared:
    """Makes entries that share what repeats: names, findings. Bounded, however little repeats."""

    def __init__(self) -> None:
        self._texts: dict[str, str] = {}
        self._findings: dict[tuple[Violation, ...], tuple[Violation, ...]] = {}
        self._weight = 0

    def entry(self, number: int, decision: Decision) -> tuple[Entry, int]:
        """The entry of a decision, and the bytes of memory that it takes, about."""
        self._weight = _ENTRY + getsizeof(decision.id)  # each is another
        text = self._text
        entry = Entry(
            number,
            decision.at,
            decision.id,
            text(decision.endpoint),
            text(decision.operation),
            decision.dry_run,
            text(decision.user),
            text(decision.namespace),
            text(decision.kind),
            text(decision.name),
            decision.allowed,
            self._shared(decision.findings) if decision.findings else (),
            decision.word,
            decision.duration,
            decision.enforcement,
        )
        return entry, self._weight + getsizeof(decision.duration)

    def _text(self, text: str) -> str:
        found = self._texts.get(text) if len(text) <= _SHORT else None
        if found is not None:
            return found
        self._weight += getsizeof(text)
        if len(text) <= _SHORT:
            if len(self._texts) >= _MAX_TEXTS:
                self._texts.clear()
            self._texts[text] = text
        return text

    def _shared(self, findings: tuple[Violation, ...]) -> tuple[Violation, ...]:
        found = self._findings.get(findings)
        if found is not None:
            return found
        text = self._text
        kept = tuple([Violation(text(f.rule), f.level, text(f.path), text(f.message)) for f in findings])
        self._weight += _FINDING * len(kept)
        if sum([len(f.path) + len(f.message) + len(f.rule) for f in kept]) + _FINDING * len(kept) <= _SHORT_FINDINGS:
            if len(self._findings) >= _MAX_FINDINGS:
                self._findings.clear()
            self._findings[kept] = kept
        return kept
