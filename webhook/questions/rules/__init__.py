"""What each rule does: `rules` and the page Rules."""
