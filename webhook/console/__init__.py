"""The human door: a Flask app that shows, and changes nothing.

`serving` runs the `app`: `pages` for people over the `api` for programs, behind the `guard`. What they show is the `state`.
"""
