"""What the nodes of each family say to a pod, in words, as JSON and as drawings."""
