"""The reference server (PyPI mail-swarms) on loopback with scripted agents, and the two endpoints that it checks keys with.

    python serve.py PORT [NAME]     keys: key-user-N, key-admin-N, key-agent-NAME
Prints `ready URL PID`; ends with its parent's interrupt.
"""
import http.server
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request

here = pathlib.Path(__file__).parent.resolve()
port, name = int(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else "alpha"


class Keys(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def answer(self):
        key = self.headers.get("Authorization", "").removeprefix("Bearer ")
        parts = key.split("-", 2)
        body = json.dumps({"token": key, "role": parts[1] if len(parts) == 3 else "", "id": parts[-1], "api_key": key}).encode()
        self.send_response(200 if len(parts) == 3 else 401)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Content-Type", "application/json")
        self.end_headers()
        self.wfile.write(body)

    do_GET = do_POST = answer

    def log_message(self, *_):
        pass


keys = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Keys)
threading.Thread(target=keys.serve_forever, daemon=True).start()
work = pathlib.Path(tempfile.mkdtemp(prefix="reference"))
(work / "pyproject.toml").write_text('[project]\nname = "x"\nversion = "1.3.6"\n')
(work / "registries").mkdir()
remote = [f"{agent}@{other}" for agent in ("supervisor", "worker") for other in ("alpha", "beta") if other != name]


def agent(called, targets, boss=False):
    return {"name": called, "factory": "python::scripted:factory", "comm_targets": targets + remote, "agent_params": {},
            "enable_entrypoint": boss, "can_complete_tasks": boss, "enable_interswarm": True}


swarm = {"name": name, "version": "1.3.6", "entrypoint": "supervisor", "enable_interswarm": True, "public": True, "actions": [],
         "agents": [agent("supervisor", ["worker", "helper"], True), agent("worker", ["supervisor", "helper"]), agent("helper", ["supervisor", "worker"])]}
(work / "swarms.json").write_text(json.dumps([swarm]))
(work / "mail.toml").write_text(f"""[server]
port = {port}
host = "127.0.0.1"
[server.swarm]
name = "{name}"
source = "swarms.json"
registry = "registries/{name}.json"
""")
endpoint = f"http://127.0.0.1:{keys.server_port}/"
env = dict(os.environ, AUTH_ENDPOINT=endpoint, TOKEN_INFO_ENDPOINT=endpoint, PYTHONPATH=str(here), LITELLM_LOCAL_MODEL_COST_MAP="True",
           MAIL_CONFIG_PATH=str(work / "mail.toml"), BASE_URL=f"http://127.0.0.1:{port}")
server = subprocess.Popen([sys.executable, "-m", "mail.cli", "server"], cwd=work, env=env, stdout=(work / "out").open("w"), stderr=subprocess.STDOUT)
try:
    for _ in range(240):
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=1).read()
            break
        except OSError:
            if server.poll() is not None:
                sys.exit((work / "out").read_text()[-3000:])
            time.sleep(0.25)
    else:
        sys.exit("the reference server did not answer\n" + (work / "out").read_text()[-3000:])
    print(f"ready http://127.0.0.1:{port} {server.pid}", flush=True)
    server.wait()
finally:
    server.terminate()
