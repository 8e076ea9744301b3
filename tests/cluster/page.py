"""The parts of docs/proof.md that runs on the whole cluster write."""

from tests.deploy.files import ROOT

PAGE = ROOT / "docs" / "proof.md"


def write_part(target: str, lines: list[str]) -> None:
    """Replace what `make <target>` wrote last."""
    begin, end = f"<!-- written by make {target} -->", f"<!-- end of what make {target} writes -->"
    before, _, rest = PAGE.read_text().partition(begin)
    _, _, after = rest.partition(end)
    PAGE.write_text("\n".join([before + begin, "", *lines, "", end]) + after)
