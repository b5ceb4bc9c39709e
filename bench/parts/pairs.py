"""posthaste and each peer, in alternation, at 1, 8 and 64 in flight."""
import os

from . import brokers, install, mail, posthaste
from .system import answers, free_port, middle

LEVELS = (1, 8, 64)
BROKERS = ("nats", "redis", "postgres")


class Pairs:
    """The measurements of one pair, by round."""

    def __init__(self, title, ours, theirs, synced, note="", ours_synced=True):
        self.about = {"title": title, "ours": ours, "theirs": theirs, "ours_synced": ours_synced, "peer_synced": synced, "note": note}
        self.rounds = {}

    def add(self, level, ours, theirs):
        mine, its = self.rounds.setdefault(level, ([], []))
        mine.append(ours)
        its.append(theirs)

    def result(self):
        levels = {str(level): {"ours": middle(mine), "theirs": middle(its)} for level, (mine, its) in self.rounds.items()}
        return {**self.about, "levels": levels}


def sends_at_brokers(run, which):
    """posthaste's durable JSON-RPC send and NATS, Redis and PostgreSQL: all are running, one is measured at a time."""
    workspace, started, peers = run.workspace, [], []
    try:
        if "nats" in which:
            plain = brokers.JetStream(workspace)
            started.append(plain)
            named = "NATS " + ".".join(map(str, plain.version))
            peers.append((Pairs("Send beside NATS JetStream, its default sync", "JSON-RPC send", f"{named} JetStream, default sync", False),
                          plain.round))
            if plain.version >= (2, 10):
                always = brokers.JetStream(workspace, always=True)
                started.append(always)
                peers.append((Pairs("Send beside NATS JetStream, every write synced", "JSON-RPC send", f"{named} JetStream, sync always", True),
                              always.round))
            else:
                run.say(f"{named} cannot sync every write (2.10 can): left out")
        if "redis" in which:
            for sync, synced in (("always", True), ("everysec", False)):
                peer = brokers.Redis(workspace, sync)
                started.append(peer)
                peers.append((Pairs(f"Send beside Redis streams, appendfsync {sync}", "JSON-RPC send",
                                    f"Redis {peer.say('info', 'server').split('redis_version:')[1].split()[0]} XADD, fsync {sync}", synced),
                              peer.round))
        if "postgres" in which:
            peer = brokers.Postgres(workspace)
            started.append(peer)
            named = "PostgreSQL " + peer.say("postgres", "SHOW server_version").split()[0]
            for database, what, short in (("plain", "three rows", "rows"), ("indexed", "three rows and a full-text index", "rows and GIN index")):
                peers.append((Pairs(f"Send beside PostgreSQL, {what}", "JSON-RPC send", f"{named}, {short}", True),
                              lambda level, seconds, database=database, peer=peer: peer.round(database, level, seconds)))
        for turn in range(run.rounds):
            for level in LEVELS:
                ours = own_send(run, level)
                for pairs, send in peers:
                    theirs = send(level, run.seconds)
                    run.tell(pairs.about["theirs"], level, theirs)
                    pairs.add(level, ours, theirs)
    finally:
        for server in started:
            server.stop()
    return [pairs.result() for pairs, _ in peers]


def own_send(run, level):
    one = posthaste.bench(run, "--in-flight", level, "--seconds", run.seconds, directory=run.workspace.path)[0]
    figure = posthaste.of_round(one)
    run.tell("posthaste, JSON-RPC send", level, figure)
    return figure


def beside_sqlite(run):
    """The JSON-RPC send and a loop that writes the same rows with SQLite alone; and signed messages and plain ones."""
    bare = Pairs("Send beside a bare SQLite loop", "JSON-RPC send", "bare SQLite loop, same rows", True,
                 "no server, no protocol; transactions as large as what is in flight")
    signed = Pairs("Signed message beside a plain one", "AIRC send", "posthaste's own plain send", True, "both sides are posthaste")
    for _ in range(run.rounds):
        for level in LEVELS:
            rounds = posthaste.bench(run, "--door", "airc", "--in-flight", level, "--seconds", run.seconds, directory=run.workspace.path)
            plain, airc = (posthaste.of_round(next(one for one in rounds if one["door"] == door)) for door in ("office", "airc"))
            run.tell("posthaste, JSON-RPC send", level, plain)
            run.tell("posthaste, AIRC send", level, airc)
            bare.add(level, plain, {"per_second": round(rounds[0]["bare_per_second"], 1)})
            signed.add(level, airc, plain)
    return [bare.result(), signed.result()]


def beside_files(run):
    """Files in a mail directory and a minimal loop that makes one durable."""
    pairs = Pairs("File beside the bare file protocol", "file send", "bare file loop", True, "create, sync, rename, sync the directory; no server on either side")
    for _ in range(run.rounds):
        answer = posthaste.bench(run, "--files", "--writers", ",".join(map(str, LEVELS)), "--seconds", run.seconds, "--in", run.workspace.path,
                              directory=run.workspace.path)
        for one in answer["files"]:
            run.tell("posthaste, file", one["writers"], {"per_second": one["files_per_second"]})
            pairs.add(one["writers"], {"per_second": round(one["files_per_second"], 1)}, {"per_second": round(one["bare_per_second"], 1)})
    return [pairs.result()]


def beside_map(run):
    """The MAP door and the SDK's own server, which keeps everything in memory."""
    node, script = install.map_sdk(os.path.join(os.path.dirname(__file__), "map_server.mjs"))
    peer = f"MAP SDK {install.MAP_SDK} server"
    send = Pairs("MAP send", "MAP send", peer, False, "theirs is in memory")
    forget = Pairs("MAP send, fire-and-forget", "MAP send, fire-and-forget", peer, False,
                   "the recipient has the message before it is in our database; theirs is in memory", ours_synced=False)
    turn = Pairs("MAP turn, durable", "MAP mail/turn", peer, False, "theirs is in memory")
    event = Pairs("MAP event to each of 100 followers", "MAP event", peer, False, "per event; at 1 and 8 in flight")
    for _ in range(run.rounds):
        # Both are started anew in every round, and followers come last: disconnected followers slow the peer down afterwards.
        port = free_port()
        ours = posthaste.Server(run.binary, run.workspace)
        # With a token, as in real use, and so with a queue of its own.
        door = f"ws{ours.url[4:]}/map?token={ours.new_token('admin', 'bench')}"
        theirs = run.workspace.start("map-sdk", [node, script, str(port)], answers(port), cwd=os.path.dirname(script))
        try:
            for pairs, options in ((send, ["--only", "send"]), (forget, ["--only", "forget"]), (turn, ["--only", "turn"]), (event, ["--only", "fanout", "--followers", "100"])):
                # The fan-out scenario has numbers in flight of its own.
                for levels in [[level] for level in LEVELS] if pairs is not event else [(1, 8)]:
                    sides = []
                    for url, pid in ((door, ours.server.pid), (f"ws://127.0.0.1:{port}", theirs.pid)):
                        sides.append(posthaste.bench(run, "--map", url, "--pid", pid, *options, "--in-flight", levels[0],
                                                  "--seconds", run.seconds, directory=run.workspace.path))
                    for level, mine, its in zip(levels, *sides):
                        run.tell(f"posthaste, {pairs.about['ours']}", level, posthaste.of_map(mine))
                        run.tell(peer, level, posthaste.of_map(its))
                        pairs.add(level, posthaste.of_map(mine), posthaste.of_map(its))
        finally:
            ours.stop()
            theirs.stop()
    return [send.result(), forget.result(), turn.result(), event.result()]


def beside_agent_mail(run):
    """The MCP door and mcp-agent-mail, by the same client."""
    ours = posthaste.Server(run.binary, run.workspace)
    theirs = mail.AgentMail(run.workspace)
    peer = f"mcp-agent-mail {install.AGENT_MAIL}"
    send = Pairs("MCP send_message", "MCP send", peer, False, "theirs commits to SQLite without a sync each and to git; 64 at once is ours alone")

    def both(level, its):
        own = mine.round(level, run.seconds)
        run.tell("posthaste, MCP send", level, own)
        if its:
            run.tell(peer, level, its)
        send.add(level, own, its)

    page = Pairs("MCP fetch_inbox, 50 messages with bodies", "MCP inbox", peer, True, "reading; one at a time")
    try:
        mine = mail.Tools(ours.server, f"{ours.url}/mcp", ours.token)
        # Both inboxes hold more than a page before the first read.
        messages = [mail.tool("send_message", mine.message(writer)) for writer in range(8)]
        mine.http.pump(ours.server, 8, request=lambda lane: messages[lane], count=200)
        theirs.fill(200)
        for _ in range(run.rounds):
            first, second = mine.inbox(200, run.seconds), theirs.tools.inbox(50, run.seconds * 2)
            run.tell("posthaste, MCP inbox", 1, first)
            run.tell(peer, 1, second)
            page.add(1, first, second)
            both(1, theirs.tools.round(1, run.seconds * 2))
        # Eight at once keep the peer busy long after the round, so they come last and once; at 64 no response would come in time.
        both(8, theirs.tools.round(8, run.seconds * 2))
        both(64, None)
    finally:
        ours.stop()
        theirs.stop()
    return [send.result(), page.result()]
