"""What people and programs hand in: YAML and JSON from files, manifests, recorded reviews, and objects of a cluster."""
