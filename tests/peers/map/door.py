"""MAP: the npm package @multi-agent-protocol/sdk; a plain WebSocket where the SDK cannot speak."""

import os
import shutil

from harness import Npm

SDK = Npm("map")
PACKAGES = [SDK]


def run(door):
    programs = os.path.join(door.work, "programs")
    shutil.copytree(os.path.dirname(os.path.abspath(__file__)), programs)
    os.symlink(os.path.join(SDK.path(door.cache), "node_modules"), os.path.join(programs, "node_modules"))

    def address(server):
        return server.url.replace("http", "ws", 1) + "/map"

    without_mail = door.serve("without-mail", "--no-auth", "--no-mail")
    with_tokens = door.serve("with-tokens")
    server = door.serve("server", "--no-auth")
    env = {
        "MAP_NOMAIL_URL": address(without_mail),
        "MAP_AUTH_URL": address(with_tokens),
        "MAP_AUTH_TOKEN": with_tokens.admin_token,
    }
    argv = ["node", os.path.join(programs, "main.mjs"), address(server)]
    door.program("@multi-agent-protocol/sdk", argv + ([f"--only={door.only}"] if door.only else []), 300, env)
