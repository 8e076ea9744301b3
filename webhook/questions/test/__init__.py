"""Whether a policy does what its suites expect: `test`."""
