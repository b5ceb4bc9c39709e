"""Files: the mail directory beside a second implementation, concurrent writers, strace and kill -9; with a server and without."""

import os
import sys

PACKAGES = []
MAIN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "main.py")


def run(door):
    only = ["--only", door.only] if door.only else []
    door.program("the directory and a server", [sys.executable, MAIN, door.binary, "--server", *only], 600)
    door.program("the directory alone", [sys.executable, MAIN, door.binary, *only], 600)
