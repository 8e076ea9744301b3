"""`python -m certs ensure|show`: the webhook's certificates in a cluster.

Runs under a service account of its own, as a Job at install and as an hourly CronJob; needs the API server and nothing
else: no volume, no port, no write access to a disk. What its account must be allowed, and nothing more:

| group | resource | names | verbs | where |
|---|---|---|---|---|
| "" | secrets | vgpu-webhook-tls, vgpu-webhook-ca | get, update | Role in the namespace |
| "" | secrets | (none: RBAC cannot name what is not there yet) | create | Role in the namespace |
| admissionregistration.k8s.io | mutatingwebhookconfigurations | vgpu-webhook | get, patch | ClusterRole |
| admissionregistration.k8s.io | validatingwebhookconfigurations | vgpu-webhook | get, patch | ClusterRole |

`show` needs the `get` of each alone. The serving pods mount vgpu-webhook-tls (tls.crt, tls.key, ca.crt) and need no
rights on Secrets; nobody but this account should read vgpu-webhook-ca.

Exit codes: 0 in order, 1 could not be put in order, 2 bad usage.
"""
