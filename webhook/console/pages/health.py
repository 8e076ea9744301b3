"""What the doctor says, certificate, settings and fleet with their age."""

from flask import Blueprint, render_template

from webhook.console.state import State


def add(pages: Blueprint, state: State) -> None:
    """Add the page."""

    @pages.get("/health")
    def health() -> str:
        return render_template("health.html")
