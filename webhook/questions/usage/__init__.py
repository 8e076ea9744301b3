"""Who holds which slice of which device: `usage` and the page Fleet."""
