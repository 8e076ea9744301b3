"""The catalogue of rules, and a rule at work."""

from flask import Blueprint, render_template, request

from webhook.console.api.rules import OPERATIONS
from webhook.console.state import State


def add(pages: Blueprint, state: State) -> None:
    """Add the pages."""
    listing, single = OPERATIONS

    @pages.get("/rules")
    def rules() -> str:
        return render_template("rules.html", found=listing.ask(state, listing.from_query(request.args)))

    @pages.get("/rules/<rule>")
    def rule(rule: str) -> str:
        values = {**single.from_query(request.args), "id": rule}
        asked = {key: values.get(key, "") for key in ("kind", "namespace")}
        return render_template("rule.html", rule=single.ask(state, values), **asked)
