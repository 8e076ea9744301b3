"""Where the pages are found."""

from flask import Blueprint

from webhook.console.pages import decisions, fleet, health, playground, rules
from webhook.console.state import State


def blueprint(state: State) -> Blueprint:
    """All pages of a console."""
    pages = Blueprint("pages", __name__)
    for page in (playground, fleet, decisions, rules, health):
        page.add(pages, state)
    return pages
