"""What is wrong in the cluster: the facts, the checks, `doctor` and the page Health."""
