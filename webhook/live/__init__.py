"""A cluster as it is now: its objects, and what live pods leave of the devices of its nodes."""
