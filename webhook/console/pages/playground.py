"""A manifest, what the webhook would make of it, and what each kind of node says to it."""

from flask import Blueprint, render_template

from webhook.console.state import State


def add(pages: Blueprint, state: State) -> None:
    """Add the page."""

    @pages.get("/")
    def playground() -> str:
        return render_template("playground.html")
