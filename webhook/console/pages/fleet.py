"""The nodes: as a picture first, as a table second."""

from flask import Blueprint, render_template, request

from webhook.console.api.fleet import OPERATIONS
from webhook.console.pages.units import ago, mebibytes
from webhook.console.pictures.node import svg
from webhook.console.state import State
from webhook.devices.families import Family

WORDS = {
    Family.VGPU: ("NVIDIA cards in slices", "card", "cards"),
    Family.GPUSHARE: ("NVIDIA cards, gpushare", "healthy card", "healthy cards"),
    Family.ASCEND: ("Ascend NPUs", "NPU", "NPUs"),
    Family.MINDCLUSTER: ("Ascend AI cores, MindCluster", "chip", "chips"),
}


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
            words=WORDS,
            svg=svg,
            mebibytes=mebibytes,
            ago=ago,
        )
