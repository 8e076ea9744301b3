"""Which recorded decisions another policy changes: `replay` and its page."""
