"""The list of AIRC sections, and what a section is given to check with.

Each check carries a tag: `core`, the AIRC core texts; `ext`, the extension with threads, mailboxes and reservations; `prof`, what
posthaste does where those texts are silent or contradict each other.
"""

import re
import sys
import traceback

from harness import Tally

from wire import Agent, Api, random_hex

SECTIONS = []

#: Status codes of a payload that is refused for its form.
INVALID = (400, 422)


def section(name, count):
    """Registers a section and the number of its checks: if it is aborted, the rest of them count as failed."""

    def register(function):
        SECTIONS.append((name, count, function))
        return function

    return register


def run(base, only="", slow=False):
    checks = Checks(Api(base), slow)
    try:
        checks.api.discover()
    except OSError as error:
        checks.tally.check("the server answers", False, error)
        return checks.tally.close()
    for name, count, function in SECTIONS:
        if re.search(only, name):
            checks.run_section(name, count, function)
    return checks.tally.close()


class Checks:
    def __init__(self, api, slow):
        self.api = api
        #: Whether checks may wait for minutes.
        self.slow = slow
        self.tally = Tally()
        self.section = ""
        self.made = 0

    def run_section(self, name, count, function):
        self.section, self.made = name, 0
        try:
            function(self, self.api)
        except Exception as error:
            frames = traceback.extract_tb(sys.exc_info()[2])
            where = next((frame for frame in reversed(frames) if frame.filename == function.__code__.co_filename), frames[-1])
            self.check("core", "section aborted", False, f"{type(error).__name__}: {error} (line {where.lineno})")
            while self.made < count:
                self.check("core", "not reached", False)
        else:
            if self.made != count:
                self.tally.check(f"{name} makes the {count} checks that it declares", False, f"it made {self.made}")

    def check(self, tag, text, condition, detail=""):
        self.made += 1
        return self.tally.check(f"[{tag}] {self.section}: {text}", condition, detail)

    def skip(self, text, why):
        self.made += 1
        self.tally.skip(f"{self.section}: {text}", why)

    def status(self, tag, text, reply, *codes, error=None):
        """The reply has one of these status codes, and this error code if one is given."""
        return self.check(tag, text, reply.status in codes and (error is None or error in reply.error), reply)

    def accept(self, tag, text, reply):
        return self.check(tag, text, reply.ok, reply)

    def reject(self, tag, text, reply, *codes):
        """The reply is a client error with one of these status codes."""
        return self.check(tag, text, reply.status in codes, reply)

    def agent(self, prefix="a"):
        """A registered agent."""
        agent = Agent(self.api, f"{prefix}_{random_hex(4)}")
        reply = agent.register()
        if not reply.ok or not agent.token:
            raise RuntimeError(f"cannot register {agent.handle}: {reply!r}")
        return agent

    def contacts(self, *prefixes):
        """Registered agents, all of which have accepted each other."""
        agents = [self.agent(prefix) for prefix in prefixes]
        for index, agent in enumerate(agents):
            for peer in agents[index + 1 :]:
                self.make_contacts(agent, peer)
        return agents

    def make_contacts(self, agent, peer):
        reply = agent.consent("request", peer, message="hello")
        if not reply.ok:
            raise RuntimeError(f"consent request failed: {reply!r}")
        reply = peer.consent("accept", agent)
        if not reply.ok:
            raise RuntimeError(f"consent accept failed: {reply!r}")
