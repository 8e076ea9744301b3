"""The console: a read-only Flask application for people, with a REST API.

Each page is one module, with its operation and models: playground (with review and explain), fleet, decisions, replay, rules,
health. `app` puts them together behind the `guard`; they read `ConsoleState`.
"""
