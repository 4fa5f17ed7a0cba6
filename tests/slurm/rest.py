# SPDX-License-Identifier: BSD-3-Clause
"""A stand-in for slurmrestd. Its rows are as slurmrestd v0.0.40 gives them: states in one array,
where that of Debian 12 (v0.0.38, which changes no nodes) has a word and flags beside it."""

import http.server
import json
import os
import socketserver
import threading
import time

API = "v0.0.40"


class Server(socketserver.ThreadingMixIn, http.server.HTTPServer):
    daemon_threads = True


class UnixServer(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    daemon_threads = True
    server_name, server_port = "localhost", 0


def node(name, *flags, state="IDLE", reason=""):
    return {"name": name, "hostname": name, "state": [state, *flags], "reason": reason,
            "reason_set_by_user": "root" if reason else "", "cpus": 2}


class Rest:
    """`nodes`: rows by name. `update(name, change)`: what a POST does; None: changes `nodes`.
    `hostile(handler)`: answers instead. `token`: what is asked for."""

    def __init__(self, names=(), path=None, token=None, update=None):
        self.nodes = {name: node(name) for name in names}
        self.asked, self.headers = [], []
        self.token, self.hostile = token, None
        self.over = threading.Event()
        self.update = update or self.change
        rest = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):  # noqa: N802
                rest.answer(self, None)

            def do_POST(self):  # noqa: N802
                rest.answer(self, self.rfile.read(int(self.headers["Content-Length"])))

            def address_string(self):
                return "-"

            def log_message(self, *_):
                pass

        self.path = path
        self.server = (UnixServer(str(path), Handler) if path else
                       Server(("127.0.0.1", 0), Handler))
        self.url = f"unix:{path}" if path else f"http://127.0.0.1:{self.server.server_port}"
        self.thread = threading.Thread(target=self.server.serve_forever, daemon=True)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        self.server.shutdown()
        self.server.server_close()
        if self.path:
            os.unlink(self.path)

    def rows(self):
        return list(self.nodes.values())

    def change(self, name, change):
        row = self.nodes[name]
        wanted = change["state"]
        row["state"] = [word for word in row["state"] if word != "DRAIN"]
        if wanted == ["DRAIN"]:
            row["state"].append("DRAIN")
            row["reason"] = change["reason"]
            row["reason_set_by_user"] = "root"
            row["reason_changed_at"] = {"set": True, "infinite": False, "number": int(time.time())}
        elif wanted == ["UNDRAIN"]:
            row["reason"] = ""

    def answer(self, handler, body):
        self.asked.append((handler.command, handler.path, body))
        self.headers.append(dict(handler.headers))
        try:
            if self.hostile:
                self.hostile(handler)
            else:
                self.respond(handler, *self.decide(handler, body))
        except (BrokenPipeError, ConnectionResetError):
            pass  # it has had enough

    def hang(self, _):
        """A hostile one: nothing is said until this stand-in ends."""
        self.over.wait()

    def decide(self, handler, body):
        words = handler.path.strip("/").split("/")
        if self.token and handler.headers.get("X-SLURM-USER-TOKEN") != self.token:
            return 401, {"errors": [{"error": "Authentication failure"}]}
        if words[:2] != ["slurm", API]:
            return 404, "Unable find requested URL."
        if words[2:] == ["nodes"] and body is None:
            return 200, {"errors": [], "nodes": self.rows()}
        if len(words) != 4 or words[2] != "node":
            return 404, "Unable find requested URL."
        rows = [row for row in self.rows() if row["name"] == words[3]]
        if not rows:
            return 500, {"errors": [{"error": "Invalid node name specified", "errno": 2018}],
                         "nodes": []}
        if body is None:
            return 200, {"errors": [], "nodes": rows}
        self.update(words[3], json.loads(body))
        return 200, {"errors": [], "warnings": []}

    @staticmethod
    def respond(handler, status, answer):
        data = (answer if isinstance(answer, str) else json.dumps(answer)).encode()
        handler.send_response(status)
        handler.send_header("Content-Length", str(len(data)))
        handler.end_headers()
        handler.wfile.write(data)
