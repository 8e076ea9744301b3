"""What a cluster looks like, and what is wrong with it. Facts are gathered first; a check is a pure function of them."""
