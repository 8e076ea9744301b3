"""Pictures of values: text without styles, scripts or references, so that the strictest content policy shows them."""
