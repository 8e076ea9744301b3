"""The machine door: /mutate, /validate, /healthz, /readyz, /metrics over HTTPS."""
