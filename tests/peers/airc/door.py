"""AIRC: programs with real Ed25519 keys; the PyPI package airc-protocol."""

import os

from harness import Venv

CLIENT = Venv("airc", "airc/requirements.txt")
PACKAGES = [CLIENT]
HERE = os.path.dirname(os.path.abspath(__file__))


def run(door):
    python = CLIENT.python(door.cache)
    # A server for each program: both register many handles, and registrations are limited by the hour.
    server = door.serve("signed")
    argv = [python, os.path.join(HERE, "main.py"), server.url]
    argv += ["--only", door.only] if door.only else []
    argv += ["--slow"] if door.slow else []
    door.program("AIRC with Ed25519 keys", argv, 400)
    if not door.only:
        server = door.serve("published-client")
        door.program("airc-protocol", [python, os.path.join(HERE, "client.py"), server.url], 400)
