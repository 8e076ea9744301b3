"""What Volcano itself is in the cluster: its version, its scheduler's configuration, queues and quotas."""
