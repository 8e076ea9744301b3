"""Charts and drawings as SVG, without styles, scripts or references, so that they need no exception of the content policy."""
