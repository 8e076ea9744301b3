"""Reviews without a server: manifests and recorded reviews become requests, each rule has an example, a cluster is scanned."""
