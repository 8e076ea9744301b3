"""What a command could not read or write: reported at once, and once more in the reports that have a place for it."""

from dataclasses import dataclass, field

from webhook.cli.program import report_error
from webhook.texts import counted

MAX_COMPLAINTS = 1_000  # that reports repeat


@dataclass(slots=True)
class Complaints:
    """Reports what could not be read or written.

    Attributes:
        count: of the errors so far.
        texts: the first of them.
    """

    count: int = 0
    texts: list[str] = field(default_factory=list)

    def __call__(self, text: str) -> None:
        self.count += 1
        if len(self.texts) < MAX_COMPLAINTS:
            self.texts.append(text)
        report_error(text)

    @property
    def sentences(self) -> list[str]:
        """For a report: the first errors, and how many more files or documents could not be read."""
        if not (others := self.count - len(self.texts)):
            return self.texts
        more = counted(others, "file or document", "files or documents")
        return [*self.texts, f"{more} could not be read; standard error has the reasons"]
