"""Rules as admission policies, which the API server itself evaluates: they keep tenants apart while the webhook is away."""
