"""The cases of MAIL 1.3, against the servers that door.py has started.

python main.py [--only REGEX]
"""

import argparse
import importlib
import sys

import kit

AREAS = (
    "auth",
    "tasks",
    "interswarm",
    "message",
    "server_info",
    "registry",
    "routing",
    "stream",
    "turns",
    "two_servers",
)

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--only", default="")
options = parser.parse_args()
for area in AREAS:
    importlib.import_module(f"cases.{area}")
sys.exit(kit.run_cases(options.only))
