"""The checks of the file mailbox.

python main.py BINARY [--server] [--only REGEX]        --server: while a server with a bridge to the directory runs
"""

import argparse
import sys

import checks

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("binary")
parser.add_argument("--server", action="store_true")
parser.add_argument("--only", default="")
options = parser.parse_args()
sys.exit(checks.run(options.binary, options.server, options.only))
