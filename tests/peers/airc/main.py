"""The AIRC checks with real Ed25519 keys, against a running server.

python main.py BASE_URL [--slow] [--only REGEX]        REGEX matches names of sections
"""

import argparse
import importlib
import sys

import suite

AREAS = ("identity", "signing", "consent", "inbox", "payloads", "broadcast", "reservations", "keys", "rate_limit", "safe_mode")

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("base")
parser.add_argument("--slow", action="store_true")
parser.add_argument("--only", default="")
options = parser.parse_args()
for area in AREAS:
    importlib.import_module(f"checks.{area}")
sys.exit(suite.run(options.base, options.only, options.slow))
