"""Bounds the work of one request."""

WORK_LIMIT = 30_000  # steps of one request, all its pods together: some 30 ms


class SearchBudget:
    """Bounds the work of one request: a pod made to be expensive gets UNKNOWN, never a slow answer."""

    __slots__ = ("left",)

    def __init__(self, steps: int = WORK_LIMIT) -> None:
        """Allow so many steps, each some look at a card: about a microsecond."""
        self.left = steps

    def spend(self, steps: int) -> bool:
        """Take steps; False when there are none left."""
        self.left -= steps
        return self.left >= 0
