"""The audit log: filtered, counted over time, followed; one decision in full, and made again."""

from flask import Blueprint, render_template

from webhook.console.state import State


def add(pages: Blueprint, state: State) -> None:
    """Add the page."""

    @pages.get("/decisions")
    def decisions() -> str:
        return render_template("decisions.html")
