"""The admission webhook for shared GPUs under Volcano: a pure core between thin doors."""
