"""AI cores of Ascend 310P chips, shared by MindCluster."""
