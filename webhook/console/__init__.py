"""The console: a read-only Flask application for people, with a REST API.

The pages are in `webhook/questions`, one package for each question. `app` puts them together behind the `guard`; they read
`ConsoleState`.
"""
