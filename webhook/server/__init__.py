"""The admission server: /mutate, /validate, /healthz, /readyz and /metrics over HTTPS."""
