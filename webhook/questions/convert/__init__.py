"""What a manifest for another tool looks like in this cluster's names: `convert`."""
