"""A server for the plugin ``extender``: it lets pods go to certified nodes only.

Nodes are certified by the label ``example.com/certified: "true"``. Of these, nodes with few pods are
better, and pods with the label ``example.com/keep: "true"`` are not evicted. Start it with
``python3 examples/extender/judge.py``, where another port than 8713 may follow.
"""

import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


def predicate(asked):
    labels = asked["node"]["Node"]["metadata"]["labels"]
    if labels.get("example.com/certified") == "true":
        return {"code": 0}
    return {"code": 2, "status": "not certified"}


def prioritize(asked):
    return {"nodeScore": {node["Name"]: 100 - len(node["Tasks"]) for node in asked["nodes"]}}


def preemptable(asked):
    def labels(task):
        return task["Pod"]["metadata"]["labels"]

    victims = [task for task in asked["evictees"] if labels(task).get("example.com/keep") != "true"]
    return {"status": 1, "victims": victims}


def told(asked):
    print(asked["task"]["Name"], asked["task"]["NodeName"], flush=True)
    return {}


VERBS = {
    "/predicate": predicate,
    "/prioritize": prioritize,
    "/preemptable": preemptable,
    "/allocate": told,
    "/deallocate": told,
}


class Judge(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"  # connections stay open

    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        answer = json.dumps(VERBS[self.path](asked)).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_):
        pass


port = int(sys.argv[1]) if len(sys.argv) > 1 else 8713
ThreadingHTTPServer(("127.0.0.1", port), Judge).serve_forever()
