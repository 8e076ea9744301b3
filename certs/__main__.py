"""`python -m certs COMMAND`; see certs/command.py."""

import sys

from certs.command import main

if __name__ == "__main__":
    sys.exit(main())
