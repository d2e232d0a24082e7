"""A server of files on this machine that breaks off, is slow, busy or shut."""

import re
import threading
import time
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from owf_fairseq.data.downloads import Patience

QUICK = Patience(tries=2, seconds=0.01, timeout=(1.0, 0.3))
"""With the server."""


class Server(ThreadingHTTPServer):
    """Has files by path; each path may have faults, one for each request, the next request has the next.

    Attributes:
        files: path to bytes.
        faults: path to ("cut", N): the connection closes after N bytes; ("slow", N, S): after N
            bytes S seconds pass;
            ("busy",): status 503; ("shut",): the connection closes at once; ("part", N): N bytes at most, as a part.
        ranges: whether it knows of them. blind: whether it sends a part whatever version was asked for.
        tag: of all files.
        asked: path and the bytes that were asked for, of each request.
    """

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.files, self.faults, self.ranges, self.tag, self.asked = {}, {}, True, '"1"', []
        self.blind = False

    def url(self, path):
        return f"http://127.0.0.1:{self.server_port}{path}"


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        server = self.server
        server.asked.append((self.path, self.headers.get("Range")))
        faults = server.faults.get(self.path)
        fault = faults.pop(0) if faults else ("none",)
        if fault[0] == "shut":
            self.connection.close()
            return
        if fault[0] == "busy" or self.path not in server.files:
            self.send_response(503 if fault[0] == "busy" else 404)
            self.end_headers()
            return
        body, start = server.files[self.path], 0
        wanted = re.fullmatch(r"bytes=(\d+)-", self.headers.get("Range", ""))
        if wanted and server.ranges and (server.blind or self.headers.get("If-Range") == server.tag):
            start = int(wanted[1])
        if start and start >= len(body):
            self.send_response(416)
            self.send_header("Content-Range", f"bytes */{len(body)}")
            self.end_headers()
            return
        self.send_response(206 if start else 200)
        if start:
            whole = len(body)
            if fault[0] == "part":
                body = body[: start + fault[1]]
            self.send_header("Content-Range", f"bytes {start}-{len(body) - 1}/{whole}")
        if server.tag:
            self.send_header("ETag", server.tag)
        self.send_header("Content-Length", str(len(body) - start))
        self.end_headers()
        first = start + (fault[1] if len(fault) > 1 else 0)
        self.wfile.write(body[start:first])
        if fault[0] == "cut":
            return
        if fault[0] == "slow":
            time.sleep(fault[2])
        self.wfile.write(body[first:])

    def log_message(self, *words):
        pass


@contextmanager
def serving():
    """Runs one."""
    with Server() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()
