"""A whole cluster on one machine without a GPU: every part is the real one except NVIDIA's driver library, which is its mock.

`make cluster` runs it until Ctrl-C; docs/try-without-gpu.md says where each part comes from.
"""
