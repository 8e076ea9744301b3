"""TODO manifests."""
