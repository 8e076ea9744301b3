"""`python -m webhook COMMAND` is `vgpu-webhook COMMAND`."""

import sys

from webhook.cli.main import main

if __name__ == "__main__":
    sys.exit(main(name="python -m webhook"))
