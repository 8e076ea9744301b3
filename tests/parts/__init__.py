"""The programs of other projects that tests run: an API server, and Volcano's scheduler. Each folder is a Go module."""
