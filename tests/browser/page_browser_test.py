#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Pages of results in Debian's Chromium: text, charts, both themes, no script but ours.

    page_browser_test.py TOCSIN-PERF PAGE-SAMPLE
"""

import collections
import html.parser
import os
import pathlib
import re
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import zlib

import patience
import tap

PERF, SAMPLE = sys.argv[1:3]
PAGE_BYTES_MAX = 500 * 1024
DRAWN_MS_MAX = 1000  # of a mesh of 64 nodes; what it took here is a few hundredths of it
WIDTH, HEIGHT = 700, 2600
LIGHT, DARK = 1, 0  # as Blink counts themes
COLOURS = {LIGHT: {"back": "ffffff", "c0": "1f5fbf", "c1": "c2571a"},
           DARK: {"back": "14171a", "c0": "7fb2ff", "c1": "ffab6b"}}
DIRECTORY = tempfile.TemporaryDirectory(prefix="tocsin-browser-")


def where(name):
    return pathlib.Path(DIRECTORY.name) / name


class Text(html.parser.HTMLParser):
    """What stands between tags, without scripts and styles; and how many of each tag there are."""

    def __init__(self, page):
        super().__init__()
        self.words, self.tags, self.inside = [], collections.Counter(), []
        self.attributes = collections.defaultdict(list)
        self.feed(page)
        self.text = " ".join(" ".join(self.words).split())

    def handle_starttag(self, tag, attrs):
        self.tags[tag] += 1
        self.attributes[tag].append(dict(attrs))
        if tag in ("script", "style"):
            self.inside.append(tag)

    def handle_endtag(self, tag):
        if self.inside and self.inside[-1] == tag:
            self.inside.pop()

    def handle_data(self, data):
        if not self.inside:
            self.words.append(data)


def rows_of_png(data):
    """Rows of bytes, three or four for each pixel, and how many; of the kinds Chromium writes."""
    parts, at, header = [], 8, None
    while at < len(data):
        length, kind = struct.unpack(">I4s", data[at:at + 8])
        if kind == b"IHDR":
            header = data[at + 8:at + 8 + length]
        if kind == b"IDAT":
            parts.append(data[at + 8:at + 8 + length])
        at += length + 12
    width, height, depth, colour = struct.unpack(">IIBB", header[:10])
    assert depth == 8 and colour in (2, 6)
    step = 3 if colour == 2 else 4
    raw, size = zlib.decompress(b"".join(parts)), width * step
    before = bytearray(size)
    for row in range(height):
        kind = raw[row * (size + 1)]
        line = bytearray(raw[row * (size + 1) + 1:(row + 1) * (size + 1)])
        unfilter(kind, line, before, step)
        yield step, line
        before = line


def unfilter(kind, line, before, step):
    for n in range(step if kind in (1,) else 0, len(line)) if kind else ():
        left = line[n - step] if n >= step else 0
        if kind == 1:
            line[n] = (line[n] + left) & 255
        elif kind == 2:
            line[n] = (line[n] + before[n]) & 255
        elif kind == 3:
            line[n] = (line[n] + (left + before[n]) // 2) & 255
        else:
            corner = before[n - step] if n >= step else 0
            guess = left + before[n] - corner
            near = min((abs(guess - value), place) for place, value
                       in enumerate((left, before[n], corner)))[1]
            line[n] = (line[n] + (left, before[n], corner)[near]) & 255


def colours_of(path):
    count = collections.Counter()
    for step, line in rows_of_png(path.read_bytes()):
        count.update(bytes(line[n:n + 3]).hex() for n in range(0, len(line), step))
    return count


def look(page, theme=LIGHT):
    """(text and tags once the page's script is done, how often each colour is in its picture)."""
    chromium = shutil.which("chromium")
    if chromium is None:
        raise tap.Skip("no chromium: ./dev test browser installs it")
    picture = page.with_suffix(f".{theme}.png")
    done = subprocess.run(
        [chromium, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
         f"--user-data-dir={where('profile')}", f"--blink-settings=preferredColorScheme={theme}",
         f"--window-size={WIDTH},{HEIGHT}", "--dump-dom", f"--screenshot={picture}",
         page.as_uri()],
        text=True, capture_output=True, check=False, timeout=patience.HANG_SECONDS,
        env={**os.environ, "HOME": DIRECTORY.name})
    assert picture.is_file(), done.stderr
    keep = os.environ.get("TOCSIN_PICTURES")
    if keep:
        shutil.copy(picture, keep)
    return Text(done.stdout), colours_of(picture)


def assert_drawn(shown, colours, theme, charts):
    """Every chart has a canvas, and curves are in the picture."""
    assert shown.tags["canvas"] == charts, shown.tags["canvas"]
    assert len(re.findall(r"data-chart", str(shown.attributes["figure"]))) == charts
    assert colours[COLOURS[theme]["back"]] > WIDTH * HEIGHT // 4
    assert colours[COLOURS[theme]["c0"]] > 200 and colours[COLOURS[theme]["c1"]] > 200, colours


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return str(one.getsockname()[1])


def measure(*arguments):
    port = free_port()
    with subprocess.Popen([PERF, "lat", "--listen", "127.0.0.1", "--port", port], text=True,
                          stdout=subprocess.PIPE) as server:
        assert "Waits" in server.stdout.readline()
        done = subprocess.run([PERF, "lat", "--port", port, *arguments, "127.0.0.1"], text=True,
                              capture_output=True, check=False, timeout=patience.HANG_SECONDS)
        server.communicate(timeout=patience.HANG_SECONDS)
    assert done.returncode == 0, done.stderr


def perf(*arguments):
    return subprocess.run([PERF, *arguments], text=True, capture_output=True, check=False,
                          timeout=patience.HANG_SECONDS)


def bytes_of(page):
    data = page.read_bytes()
    assert len(data) <= PAGE_BYTES_MAX, len(data)
    return data.decode("utf-8")


def a_run_is_told_in_words_and_curves():
    page = where("run.html")
    measure("--op", "send", "--iterations", "3000", "--json", str(where("run.json")),
            "--html", str(page))
    bytes_of(page)
    for theme in (LIGHT, DARK):
        shown, colours = look(page, theme)
        for words in ("Latency of send", "3000 samples in", "p99, us", "95 % interval", "half, us",
                      "Plan and both machines", "kernel"):
            assert words in shown.text, words
        assert_drawn(shown, colours, theme, 2)


def a_kept_file_gives_the_same_page():
    again = where("again.html")
    done = perf("verify", str(where("run.json")), "--html", str(again))
    assert done.returncode == 0 and "each figure follows" in done.stdout, done
    assert again.read_bytes() == where("run.html").read_bytes()


def a_comparison_says_which_is_slower_and_shows_each_run():
    page, run = where("compare.html"), str(where("run.json"))
    done = perf("compare", *[run] * 6, "--with", *[run] * 6, "--html", str(page))
    assert done.returncode in (0, 3), done
    bytes_of(page)
    shown, colours = look(page)
    assert "no change within 2 %" in shown.text and "p50 of each run" in shown.text
    assert_drawn(shown, colours, LIGHT, 3)


def every_kind_of_chart_is_drawn_and_hostile_text_stays_text():
    page = where("sample.html")
    page.write_bytes(subprocess.run([SAMPLE], capture_output=True, check=True).stdout)
    text = page.read_bytes()
    assert len(text) <= PAGE_BYTES_MAX
    # Its own two scripts and the charts' numbers.
    assert text.count(b"<script") == 3 and text.count(b"</script>") == 3
    shown, colours = look(page)
    assert_drawn(shown, colours, LIGHT, 4)
    assert "taken" in shown.text  # as text
    assert shown.tags["script"] == 3 and shown.tags["b"] == shown.tags["img"] == 0
    took = int(re.search(r"'data-drawn-ms': '(\d+)'", str(shown.attributes["html"]))[1])
    tap.comment(f"64 nodes and three other charts drawn in {took} ms")
    assert took <= DRAWN_MS_MAX


def nothing_is_asked_of_any_network():
    text = where("sample.html").read_text(encoding="utf-8", errors="replace")
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', text)[1]
    assert policy.startswith("default-src 'none';")
    assert not re.search(r"<(link|img|iframe|object|embed)|@import|url\(", text)


tap.run([
    ("a run is told in words and curves, by day and by night",
     a_run_is_told_in_words_and_curves),
    ("a kept file gives the same page", a_kept_file_gives_the_same_page),
    ("a comparison says which is slower and shows each run",
     a_comparison_says_which_is_slower_and_shows_each_run),
    ("every kind of chart is drawn, and hostile text stays text",
     every_kind_of_chart_is_drawn_and_hostile_text_stays_text),
    ("nothing is asked of any network", nothing_is_asked_of_any_network),
])
