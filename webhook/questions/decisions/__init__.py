"""What was decided: the command that reads the audit log, and the page Decisions.

deploy/components/store ships the logs of all replicas to a database; deploy/components/store-pods is about its console.
"""
