"""MAIL swarms: cases that host swarms of their own; the PyPI package mail-swarms, client and router of the Python reference."""

import json
import os
import shutil
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from harness import Server, Venv

CASES = Venv("swarm", "swarm/requirements.txt")
CLIENT = Venv("mail-swarms", "swarm/requirements-client.txt", oldest_python=(3, 12))
PACKAGES = [CASES, CLIENT]
#: Where there is no Python for it, its checks are left out.
OPTIONAL = [CLIENT]

#: On the servers, by realm: role and name of each token, and what the cases call it.
CREATED = {
    "alpha": [
        ("admin", "admin", "adm-1"),
        ("admin2", "admin", "adm-2"),
        ("user", "user", "usr-1"),
        ("user2", "user", "usr-2"),
        ("peer", "agent", "peer"),
        ("probe", "agent", "probe"),
        ("beta_on_alpha", "agent", "beta"),
    ],
    "beta": [("admin_b", "admin", "adm-1"), ("user_b", "user", "usr-1"), ("alpha_on_beta", "agent", "alpha")],
}


def run(door):
    # The programs of the agents lie beside the swarm files.
    programs = os.path.join(door.work, "programs")
    shutil.copytree(os.path.dirname(os.path.abspath(__file__)), programs)
    sys.path.insert(0, programs)
    from scripted_swarm import definition

    servers, tokens = {}, {"to_peer": "peer-token-1", "to_peer2": "peer-token-2", "to_probe": "probe-token"}
    for name, other in (("alpha", "beta"), ("beta", "alpha")):
        file = os.path.join(programs, f"{name}.json")
        with open(file, "w", encoding="utf-8") as out:
            json.dump(definition(name, other), out, indent=1)
        servers[name] = Server(door.binary, os.path.join(door.work, name), ["--swarm", file])
        for key, role, token_name in CREATED[name]:
            tokens[key] = servers[name].create_token(name, role, token_name)
    # What the servers present to other swarms.
    present = {
        "BETA": "alpha_on_beta",
        "ALPHA": "beta_on_alpha",
        "PEER": "to_peer",
        "PEER2": "to_peer2",
        "PROBE": "to_probe",
    }
    for server in servers.values():
        server.env.update({f"SWARM_AUTH_TOKEN_{swarm}": tokens[key] for swarm, key in present.items()})
        door.servers.append(server)
        server.start()

    config = {
        "url": servers["alpha"].url,
        "url_b": servers["beta"].url,
        "data": servers["alpha"].data,
        "definition": os.path.join(programs, "alpha.json"),
        "tokens": tokens,
        "restart_url": serve_restarts(servers["alpha"]),
    }
    env = {"SWARM_CONFIG": os.path.join(door.work, "config.json")}
    with open(env["SWARM_CONFIG"], "w", encoding="utf-8") as out:
        json.dump(config, out)

    if not CLIENT.installed(door.cache):
        print(f"skip mail-swarms: {CLIENT.available()}")
    elif not door.only:
        door.program("mail-swarms", [CLIENT.python(door.cache), os.path.join(programs, "client.py")], 300, env)
    argv = [CASES.python(door.cache), os.path.join(programs, "main.py")]
    door.program("MAIL 1.3", argv + (["--only", door.only] if door.only else []), 900, env)


def serve_restarts(server):
    """An address that restarts the server when it is posted to: the cases run in another process."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            try:
                server.restart()
                status = 200
            except Exception as error:
                print(f"could not restart the server: {error}", flush=True)
                status = 500
            self.send_response(status)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_):
            pass

    control = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    control.daemon_threads = True
    threading.Thread(target=control.serve_forever, daemon=True).start()
    return f"http://127.0.0.1:{control.server_address[1]}/"
