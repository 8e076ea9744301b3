"""The human door: a Flask app that shows, and changes nothing."""
