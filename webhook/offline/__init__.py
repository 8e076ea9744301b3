"""Reviews without an API server: manifests become requests, and each rule is shown at work on an example."""
