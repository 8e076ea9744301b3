"""The nodes: as a picture first, as a table second."""

from flask import Blueprint, render_template, request

from webhook.console.api.fleet import OPERATIONS
from webhook.console.pages.units import ago, mebibytes
from webhook.console.pictures.node import svg
from webhook.console.state import State
from webhook.devices import registry


def add(pages: Blueprint, state: State) -> None:
    """Add the page."""
    (operation,) = OPERATIONS

    @pages.get("/fleet")
    def fleet() -> str:
        values = operation.from_query(request.args)
        found = operation.ask(state, values)
        return render_template(
            "fleet.html",
            found=found,
            asked=values,
            filtered=bool(values.keys() & {"family", "name", "type"}),
            families={family.id: family for family in registry.FAMILIES},
            svg=svg,
            mebibytes=mebibytes,
            ago=ago,
        )
