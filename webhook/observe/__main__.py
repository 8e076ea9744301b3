"""`python -m webhook.observe` prints the README's table of metrics."""

import sys

from webhook.observe.metrics import markdown

sys.stdout.write(markdown())
