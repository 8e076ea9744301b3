"""The ascend family: NPUs, and parts of them, as HAMi's ascend-device-plugin registers and Volcano places them."""
