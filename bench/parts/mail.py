"""Two servers with the same tools, mcp-agent-mail and posthaste's MCP door, under the same raw client."""
import datetime
import json
import os
import sqlite3
import sys
import time

from . import install
from .drive import SESSION, Http
from .system import BODY, SUBJECT, answers, free_port

PROJECT = "/srv/projects/bench"
NAMES = ["GreenCastle", "BlueLake", "RedStone", "PurpleBear", "CalmRiver", "SilentForest", "BrightMountain", "GoldFalcon", "SwiftEagle"]
HELLO = {"jsonrpc": "2.0", "id": 0, "method": "initialize",
         "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}}}


def tool(name, arguments):
    return json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": name, "arguments": arguments}},
                      separators=(",", ":"))


class Tools:
    """Nine agents of one project on a server with the tools; the first reads, the others write to it."""

    def __init__(self, server, url, token=None):
        self.server = server
        self.http = Http(url, {"authorization": f"Bearer {token}"} if token else None)
        head, _ = self.http.ask(json.dumps(HELLO))
        session = SESSION.search(head)
        if session:
            self.http.headers["mcp-session-id"] = session[1].decode()
        self.call("ensure_project", {"human_key": PROJECT})
        for name in NAMES:
            self.call("register_agent", {"project_key": PROJECT, "program": "bench", "model": "none", "name": name})
            try:
                self.call("set_contact_policy", {"project_key": PROJECT, "agent_name": name, "policy": "open"})
            except RuntimeError:
                pass  # 0.1.0 has no such tool in its default set; the sends below fail if messages do not arrive
        self.call("send_message", self.message(1))

    def call(self, name, arguments):
        _, body = self.http.ask(tool(name, arguments))
        text = body.decode(errors="replace")
        if '"isError":true' in text or '"isError": true' in text or '"error":' in text[:120]:
            raise RuntimeError(f"{name}: {text[:400]}")
        return text

    @staticmethod
    def message(writer):
        return {"project_key": PROJECT, "sender_name": NAMES[1 + writer % 8], "to": [NAMES[0]], "subject": SUBJECT, "body_md": BODY}

    def round(self, in_flight, seconds, grace=20):
        messages = [tool("send_message", self.message(writer)) for writer in range(8)]
        return self.http.pump(self.server, in_flight, seconds, lambda lane: messages[lane % 8], grace=grace)

    def inbox(self, count, seconds=None):
        ask = tool("fetch_inbox", {"project_key": PROJECT, "agent_name": NAMES[0], "limit": 50, "include_bodies": True})
        return self.http.pump(self.server, 1, seconds, lambda _lane: ask, count=count)


class AgentMail:
    """mcp-agent-mail from PyPI, with its database and archive in a directory of the run."""

    def __init__(self, workspace):
        python = install.agent_mail()
        self.data, port = workspace.folder("agent-mail"), free_port()
        settings = {**os.environ, "LITELLM_LOCAL_MODEL_COST_MAP": "True", "STORAGE_ROOT": os.path.join(self.data, "archive"),
                    "GIT_AUTHOR_NAME": "bench", "GIT_AUTHOR_EMAIL": "bench@localhost", "GIT_COMMITTER_NAME": "bench",
                    "GIT_COMMITTER_EMAIL": "bench@localhost"}
        self.server = workspace.start("agent-mail", [python, "-m", "mcp_agent_mail.http", "--port", str(port)], answers(port), cwd=self.data,
                                  env=settings, patience=120)
        self.tools = Tools(self.server, f"http://127.0.0.1:{port}/mcp/")

    def stop(self):
        self.server.stop()

    def fill(self, messages):
        """Writes into its database: by tool a hundred thousand would take hours. Its archive of files gets none of these."""
        db = sqlite3.connect(os.path.join(self.data, "storage.sqlite3"), timeout=60)
        project = db.execute("SELECT id FROM projects WHERE human_key = ?", [PROJECT]).fetchone()[0]
        agents = dict(db.execute("SELECT name, id FROM agents WHERE project_id = ?", [project]))
        there = db.execute("SELECT count(*) FROM messages").fetchone()[0]
        first = db.execute("SELECT coalesce(max(id), 0) FROM messages").fetchone()[0] + 1
        now = datetime.datetime.now(datetime.timezone.utc).isoformat(sep=" ")[:26]
        rows = [(first + n, project, agents[NAMES[1]], f"Subject number {n}", f"Message {n}. {BODY}", now) for n in range(messages - there)]
        db.executemany("INSERT INTO messages(id, project_id, sender_id, subject, body_md, importance, ack_required, created_ts, attachments)"
                          " VALUES(?, ?, ?, ?, ?, 'normal', 0, ?, '[]')", rows)
        db.executemany("INSERT INTO message_recipients(message_id, agent_id, kind) VALUES(?, ?, 'to')",
                          [(row[0], agents[NAMES[0]]) for row in rows])
        db.commit()
        db.close()


def main():
    """For manual inspection: measures the peer alone."""
    from .system import Workspace
    with Workspace() as workspace:
        peer = AgentMail(workspace)
        started = time.perf_counter()
        print(peer.tools.round(1, 3), time.perf_counter() - started, file=sys.stderr)


if __name__ == "__main__":
    main()
