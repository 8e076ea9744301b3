"""`python -m certs COMMAND` is `vgpu-webhook certs COMMAND`."""

import sys

from webhook.cli.main import main

if __name__ == "__main__":
    sys.exit(main(["certs", *sys.argv[1:]], name="python -m"))
