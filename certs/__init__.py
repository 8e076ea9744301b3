"""Certificates: creates and renews them, in files or in a cluster. Imports `webhook.cluster`, the client, and nothing above it.

    __main__ > ensure | show > cluster > plan > state > verify | pki
                                  └──> binding

All is pure below `cluster`, except `pki`, which generates keys and writes files. The webhook itself needs only `pki`.
"""
