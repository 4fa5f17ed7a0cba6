#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""nginx before an agent, configured as docs/security.md says: TLS and one user.

    proxy_test.py BUILD-ROOT SECURITY-PAGE
"""

import base64
import gzip
import http.client
import os
import pathlib
import re
import shutil
import socket
import ssl
import subprocess
import sys

import cluster as clusters
import patience
import tap

PAGE = pathlib.Path(sys.argv[2])
NGINX = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")
AGENT_PORT = 28031
PROXY_PORT = 28443
USER, PASSWORD = "prometheus", "correct horse"
# nginx.conf in the style of a distribution, with all paths in the test's directory.
MAIN = """
{user}
daemon off;
pid {directory}/nginx.pid;
error_log stderr;
events {{}}
http {{
	access_log off;
	client_body_temp_path {directory}/body;
	proxy_temp_path {directory}/proxy;
	fastcgi_temp_path {directory}/fastcgi;
	scgi_temp_path {directory}/scgi;
	uwsgi_temp_path {directory}/uwsgi;
	include {directory}/tocsin.conf;
}}
"""


def documented():
    """The configuration of the page."""
    found = re.findall(r"```nginx\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert len(found) == 1, "the page has one configuration of nginx"
    return found[0]


class Proxy:
    """nginx, on an address of the cluster's own block."""

    def __init__(self, cluster):
        self.address = cluster.address(250)
        self.directory = cluster.directory / "nginx"
        self.directory.mkdir()
        self.log = self.directory / "log"
        self.certificate = self.directory / "node.crt"
        subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2",
             "-subj", "/CN=n1", "-addext", f"subjectAltName=IP:{self.address}",
             "-keyout", self.directory / "node.key", "-out", self.certificate],
            check=True, capture_output=True)
        secret = subprocess.run(["openssl", "passwd", "-6", PASSWORD], check=True, text=True,
                                capture_output=True).stdout.strip()
        (self.directory / "users").write_text(f"{USER}:{secret}\n")
        text = documented()
        for was, is_ in (
                ("/etc/nginx/tocsin/", f"{self.directory}/"),
                (f"listen {PROXY_PORT}", f"listen {self.address}:{PROXY_PORT}"),
                (f"127.0.0.1:{AGENT_PORT}", f"{cluster.agents[0].address}:{AGENT_PORT}")):
            assert was in text, was
            text = text.replace(was, is_)
        (self.directory / "tocsin.conf").write_text(text)
        # The workers read the users, which are in a directory of root.
        user = "user root;" if os.getuid() == 0 else ""
        (self.directory / "nginx.conf").write_text(
            MAIN.format(directory=self.directory, user=user))
        self.process = None

    def __enter__(self):
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(
                [NGINX, "-p", self.directory, "-c", self.directory / "nginx.conf"],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log)

        def listens():
            assert self.process.poll() is None, self.log.read_text()[-2000:]
            try:
                socket.create_connection((self.address, PROXY_PORT), 1).close()
            except OSError:
                return False
            return True

        clusters.wait_until("nginx", listens)
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()

    def get(self, path, user=USER, password=PASSWORD, method="GET", **headers):
        """(status, headers, body) of a request over TLS, whose certificate is verified."""
        context = ssl.create_default_context(cafile=self.certificate)
        connection = http.client.HTTPSConnection(
            self.address, PROXY_PORT, context=context, timeout=patience.HANG_SECONDS)
        if user:
            token = base64.b64encode(f"{user}:{password}".encode()).decode()
            headers["Authorization"] = f"Basic {token}"
        try:
            connection.request(method, path, headers={
                name.replace("_", "-"): value for name, value in headers.items()})
            answer = connection.getresponse()
            return answer.status, answer.headers, answer.read()
        finally:
            connection.close()


def the_user_gets_the_pages(_, proxy):
    for path, part in (("/metrics", b"tocsin_joined 1"), ("/health", b'"grade"'),
                       ("/status.json", b'"peers"')):
        status, _, body = proxy.get(path)
        assert status == 200 and part in body, (path, status, body[:300])


def nobody_else_gets_a_page(_, proxy):
    for user, password in ((None, None), (USER, "wrong"), ("other", PASSWORD), (USER, "")):
        status, _, body = proxy.get("/metrics", user, password)
        assert status == 401 and b"tocsin_" not in body, (user, password, status)


def only_reading_passes(_, proxy):
    status, _, _ = proxy.get("/metrics", method="POST")
    assert status == 403, status


def a_compressed_page_passes_as_it_is(_, proxy):
    status, headers, body = proxy.get("/metrics", Accept_Encoding="gzip")
    assert status == 200 and headers["Content-Encoding"] == "gzip", headers.items()
    assert b"tocsin_joined 1" in gzip.decompress(body)
    assert proxy.get("/metrics")[1]["Content-Encoding"] is None


def one_without_tls_gets_nothing(_, proxy):
    connection = http.client.HTTPConnection(proxy.address, PROXY_PORT,
                                            timeout=patience.HANG_SECONDS)
    connection.request("GET", "/metrics")
    answer = connection.getresponse()
    assert answer.status == 400 and b"tocsin_" not in answer.read()
    connection.close()


def an_agent_that_is_gone_is_an_error(cluster, proxy):
    cluster.agents[0].kill()
    status, _, _ = proxy.get("/health")
    assert status == 502, status


TESTS = [
    ("the user gets the pages", the_user_gets_the_pages),
    ("nobody else gets a page", nobody_else_gets_a_page),
    ("only reading passes", only_reading_passes),
    ("a compressed page passes as it is", a_compressed_page_passes_as_it_is),
    ("one without TLS gets nothing", one_without_tls_gets_nothing),
    ("an agent that is gone is an error", an_agent_that_is_gone_is_an_error),
]


def main():
    def skip():
        raise tap.Skip("nginx or openssl is not installed (Debian packages nginx-light, openssl)")

    if NGINX is None or shutil.which("openssl") is None:
        tap.run([(sentence, skip) for sentence, _ in TESTS])
    with clusters.Cluster(sys.argv[1], 1) as cluster:
        cluster.start()
        agent = cluster.agents[0]
        clusters.wait_until("the agent", agent.answers)
        with Proxy(cluster) as proxy:
            clusters.wait_until("the agent to join", lambda: proxy.get("/health")[0] == 200)
            tap.run([(sentence, lambda test=test: test(cluster, proxy))
                     for sentence, test in TESTS])


if __name__ == "__main__":
    main()
