"""What holds for every pod, fleet and policy: the laws, tried on random scenarios by `make test` and `make fuzz`."""
