"""Calls to the API server: credentials, a client, and a reflector that keeps a copy of a collection up to date."""
