"""Device config, policy and nodes from files and the cluster, as one snapshot that is kept up to date."""
