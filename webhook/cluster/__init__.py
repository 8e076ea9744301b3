"""Where facts about the cluster come from. Today files; the API server is to follow behind the same values."""
