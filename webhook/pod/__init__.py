"""Reads pods, and changes them: JSON and Kubernetes' types, without anything about devices."""
