"""The admission webhook for shared GPUs under Volcano: a pure core behind thin endpoints and commands."""
