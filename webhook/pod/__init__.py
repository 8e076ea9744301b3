"""What a pod says, and how to change it. Knows JSON and Kubernetes' Pod, nothing of GPUs."""
