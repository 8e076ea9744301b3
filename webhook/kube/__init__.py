"""TODO kube."""
