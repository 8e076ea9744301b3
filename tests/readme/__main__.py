"""Writes the generated tables of README.md anew. Those of the Chinese page are translated by hand: its test names the rows."""

from pathlib import Path

from tests.readme.tables import renewed

README = Path(__file__).parents[2] / "README.md"

README.write_text(renewed(README.read_text()))
