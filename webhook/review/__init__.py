"""The review of a request with a snapshot of all settings. Pure: everybody who reviews gets the same outcome."""
