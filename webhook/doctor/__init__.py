"""What is wrong with a cluster around the webhook. `gather` reads the facts; a check is a pure function of them."""
