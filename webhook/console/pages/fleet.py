"""The nodes: as a picture first, as a table second."""

from flask import Blueprint, render_template

from webhook.console.state import State


def add(pages: Blueprint, state: State) -> None:
    """Add the page."""

    @pages.get("/fleet")
    def fleet() -> str:
        return render_template("fleet.html")
