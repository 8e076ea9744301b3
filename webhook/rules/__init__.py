"""The policy: one rule, one file, one id. A rule reads a pod and a context, and does not depend on other rules."""
