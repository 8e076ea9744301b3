"""Rules as admission policies, which the API server itself evaluates: they hold while the webhook is away."""
