"""The documentation: its generated parts, and tests that hold its pages to the code."""
