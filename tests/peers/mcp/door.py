"""MCP: the PyPI package mcp in its versions 1.30 and 2.3. (The official conformance suite is ../mcp.mjs.)"""

import os

from harness import Venv

FIRST = Venv("mcp1", "mcp/requirements-1.txt")
SECOND = Venv("mcp2", "mcp/requirements-2.txt")
PACKAGES = [FIRST, SECOND]
HERE = os.path.dirname(os.path.abspath(__file__))


def run(door):
    server = door.serve("server")
    arguments = [server.url + "/mcp", server.admin_token]
    door.program("mcp 1.30", [FIRST.python(door.cache), os.path.join(HERE, "agent_mail.py"), *arguments], 300)
    door.program("mcp 2.3", [SECOND.python(door.cache), os.path.join(HERE, "clients.py"), *arguments], 150)
