"""The API server: its client, collections that are followed or read once, and the settings kept up to date."""
