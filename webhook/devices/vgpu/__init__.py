"""The vgpu family: slices of NVIDIA cards, as volcano-vgpu-device-plugin registers and Volcano places them."""
