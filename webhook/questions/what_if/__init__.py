"""What would start, or not fit again, with other nodes or cards: `what-if`."""
