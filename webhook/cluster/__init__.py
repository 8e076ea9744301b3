"""Where facts about the cluster come from: files, and the API server. Read once, or followed."""
