"""The state of what the console reads: the settings in use, and the audit log."""

from webhook.audit.reader import Skipped
from webhook.audit.store import Extent
from webhook.console.state import ConsoleState
from webhook.errors import StoreError
from webhook.output.json import ResponseModel


class LogStatus(ResponseModel):
    """What the console has read of the audit log.

    Attributes:
        count: how many decisions are stored.
        extent: the numbers and times of the oldest and of the newest one.
        progress: the share that is read of what there was at the start, from 0 to 1.
        caught_up: whether the log was read to its end.
        problem: what cannot be read, and what to do; None if all of it can.
        skipped: lines that are not decisions.
    """

    count: int
    extent: Extent
    progress: float
    caught_up: bool
    problem: str | None
    skipped: Skipped


def log_status(state: ConsoleState) -> LogStatus | None:
    """What is read of the audit log; None if the console was started without one."""
    source = state.decisions
    if source is None:
        return None
    problem = source.problem or "; ".join(source.complaints) or None
    try:
        extent = source.store.extent()
    except StoreError as error:
        extent, problem = Extent(0, 0, None, None), str(error)
    return LogStatus(
        count=extent.count,
        extent=extent,
        progress=source.progress,
        caught_up=source.caught_up,
        problem=problem,
        skipped=source.skipped,
    )
