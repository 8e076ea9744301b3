"""Certificates: making them, and keeping them in order in files or in a cluster. Knows nothing of the webhook.

    __main__ > ensure | show > cluster > api | binding
                                  └──> deeds > plan > sight > state > verify | pki | store

`binding` is pure, and so is all from `deeds` on, but for the keys that are made and for `store`, which writes files. Only
`api` and what is above it loads the Kubernetes client: the webhook takes `pki` and `store` from here.
"""
