"""The scripted swarm's actions: JSON arguments on stdin, the result as text on stdout, exit 1 with the reason on stderr."""

import json
import sys

text = json.load(sys.stdin).get("text", "")
if sys.argv[1] == "upper":
    print(text.upper(), end="")
elif sys.argv[1] == "boom":
    sys.exit(f"boom {text}")
else:
    print(text, end="")
