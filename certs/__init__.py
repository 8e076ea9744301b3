"""Certificates: making them and keeping them in files. Knows nothing of the webhook."""
