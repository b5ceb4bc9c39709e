"""Installs the peers by their published names (Debian packages, PyPI, npm), in a cache for the next run."""
import glob
import hashlib
import lzma
import os
import re
import shutil
import subprocess
import sys
import urllib.request

CACHE = os.path.expanduser(os.environ.get("POSTHASTE_BENCH_CACHE", "~/.cache/posthaste-bench"))
MAP_SDK, WS, AGENT_MAIL = "0.1.15", "^8.0.0", "0.1.0"
# Where JetStream can sync every write (2.10 and later); used when the installed release is older.
RELEASE = "trixie"
PATHS = ["/usr/sbin", "/usr/local/sbin", *sorted(glob.glob("/usr/lib/postgresql/*/bin"), reverse=True)]


def find(program):
    return shutil.which(program) or shutil.which(program, path=os.pathsep.join(PATHS))


def debian(programs):
    """Installs the packages whose programs are missing: `{program: package}`."""
    missing = sorted({package for program, package in programs.items() if not find(program)})
    if missing:
        command = ["apt-get", "install", "-y", "-qq", "--no-install-recommends", *missing]
        if os.geteuid() != 0 or not shutil.which("apt-get"):
            raise RuntimeError(f"please install: {' '.join(missing)}")
        print(f"installing {' '.join(missing)}", file=sys.stderr)
        # The servers are started by this run, each in its own directory; the services of the packages stay off.
        quiet = {**os.environ, "DEBIAN_FRONTEND": "noninteractive", "RUNLEVEL": "1"}
        subprocess.run(["apt-get", "update", "-qq"], stdout=subprocess.DEVNULL, env=quiet, check=False)
        subprocess.run(command, stdout=subprocess.DEVNULL, env=quiet, check=True)
        PATHS.extend(sorted(glob.glob("/usr/lib/postgresql/*/bin"), reverse=True))
    return {program: find(program) for program in programs}


def nats():
    """A nats-server that can sync every write, and its version; else the installed one."""
    own = os.path.join(CACHE, "nats", "usr", "sbin", "nats-server")
    given = os.environ.get("NATS_SERVER")
    program = given or (own if os.path.exists(own) else debian({"nats-server": "nats-server"})["nats-server"])
    version = nats_version(program)
    if version < (2, 10) and not given:
        try:
            program, version = newer_nats(own), nats_version(own)
        except Exception as why:
            print(f"no nats-server 2.10 from Debian {RELEASE} ({why}); syncing every write is left out", file=sys.stderr)
    return program, version


def nats_version(program):
    text = subprocess.run([program, "--version"], capture_output=True, text=True, check=True).stdout
    return tuple(int(part) for part in re.search(r"(\d+)\.(\d+)\.(\d+)", text).groups())


def mirror():
    """The Debian mirror of this machine."""
    command = ["apt-get", "indextargets", "--format", "$(SITE) $(RELEASE)", "Created-By: Packages", "Component: main"]
    sources = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    return next(site for site, release in map(str.split, sources) if "security" not in release)


def newer_nats(program):
    """Unpacks the nats-server of a later Debian release, its sum checked, without installing it."""
    machine = subprocess.run(["dpkg", "--print-architecture"], capture_output=True, text=True, check=True).stdout.strip()
    debian_packages = mirror()
    index = fetch(f"{debian_packages}/dists/{RELEASE}/main/binary-{machine}/Packages.xz")
    for entry in lzma.decompress(index).decode().split("\n\n"):
        if entry.startswith("Package: nats-server\n"):
            fields = dict(line.split(": ", 1) for line in entry.splitlines() if ": " in line and not line.startswith(" "))
            break
    package = fetch(f"{debian_packages}/{fields['Filename']}")
    if hashlib.sha256(package).hexdigest() != fields["SHA256"]:
        raise RuntimeError("the package is not what the index says")
    root = os.path.dirname(os.path.dirname(os.path.dirname(program)))
    os.makedirs(root, exist_ok=True)
    with open(os.path.join(root, "nats.deb"), "wb") as out:
        out.write(package)
    subprocess.run(["dpkg", "-x", out.name, root], check=True)
    if not os.path.exists(program):
        os.makedirs(os.path.dirname(program), exist_ok=True)
        shutil.copy(os.path.join(root, "usr", "bin", "nats-server"), program)
    return program


def fetch(url):
    with urllib.request.urlopen(url, timeout=120) as answer:
        return answer.read()


def agent_mail():
    """A Python that has mcp-agent-mail."""
    home = os.path.join(CACHE, f"agent-mail-{AGENT_MAIL}")
    python = os.path.join(home, "bin", "python")
    if not os.path.exists(os.path.join(home, "complete")):
        print(f"installing mcp-agent-mail {AGENT_MAIL} from PyPI (some minutes, once)", file=sys.stderr)
        subprocess.run([sys.executable, "-m", "venv", home], check=True)
        subprocess.run([python, "-m", "pip", "install", "-q", f"mcp-agent-mail=={AGENT_MAIL}"], check=True)
        open(os.path.join(home, "complete"), "w").close()
    return python


def map_sdk(source):
    """A folder with the SDK and the server file, so that Node.js resolves the import."""
    home = os.path.join(CACHE, f"map-{MAP_SDK}")
    os.makedirs(home, exist_ok=True)
    node = debian({"node": "nodejs", "npm": "npm"})["node"]
    if not os.path.exists(os.path.join(home, "node_modules", "@multi-agent-protocol", "sdk", "package.json")):
        print(f"installing @multi-agent-protocol/sdk {MAP_SDK} from npm", file=sys.stderr)
        with open(os.path.join(home, "package.json"), "w") as out:
            out.write('{ "private": true, "type": "module" }\n')
        subprocess.run(["npm", "install", "--silent", "--no-fund", "--no-audit", f"@multi-agent-protocol/sdk@{MAP_SDK}",
                        f"ws@{WS}"], cwd=home, check=True)
    shutil.copy(source, os.path.join(home, "map_server.mjs"))
    return node, os.path.join(home, "map_server.mjs")
