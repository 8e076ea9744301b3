"""Charts and pictures of nodes as values for templates."""
