"""What the policy says: `policy` and the page of a recorded policy."""
