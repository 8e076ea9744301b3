"""What the doctor says, certificate, settings and fleet with their age."""

from flask import Blueprint, render_template, request

from webhook.console.api.health import OPERATIONS
from webhook.console.pages.units import ago
from webhook.console.state import State
from webhook.doctor.check import Status

# A shape for each, as colours alone do not tell them apart for everybody; and the word for it as a class.
SIGNS = {
    Status.BROKEN: ("✕", "broken"),
    Status.WARNING: ("▲", "warning"),
    Status.UNCHECKED: ("?", "unchecked"),
    Status.OK: ("✓", "ok"),
}
HEADLINES = {
    Status.BROKEN: "Something is broken",
    Status.WARNING: "Something needs a look",
    Status.UNCHECKED: "Nothing is wrong, as far as could be looked at",
    Status.OK: "All is well",
}


def add(pages: Blueprint, state: State) -> None:
    """Add the page."""
    operation = OPERATIONS[0]

    @pages.get("/health")
    def health() -> str:
        values = operation.from_query(request.args)
        found = operation.ask(state, values)
        return render_template(
            "health.html", found=found, asked=values, signs=SIGNS, headline=HEADLINES[found.status], ago=ago
        )
