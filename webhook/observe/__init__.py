"""Told after the fact: audit log and metrics. Nothing here can change a verdict or fail an admission."""
