"""The policy: one rule, one file, one id. A rule sees a pod and a context, nothing else, and knows no other rule."""
