"""What the nodes of each family say to a pod, in words and as JSON."""
