"""What the API server is configured with: the webhook configurations and their match conditions."""
