#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Tests of result pages in Debian's Chromium: text, charts, both themes, and no foreign script.

page_browser_test.py TOCSIN-PERF PAGE-SAMPLE MESH-SAMPLE
"""

import collections
import html.parser
import itertools
import json
import os
import pathlib
import re
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import xml.etree.ElementTree
import zlib

import patience
import tap

PERF, SAMPLE, MESH_SAMPLE = sys.argv[1:4]
PAGE_BYTES_MAX = 500 * 1024
DRAWN_MS_MAX = 1000  # for a mesh of 64 nodes; measured: a few hundredths of this
WIDTH, HEIGHT = 700, 2600
LIGHT, DARK = 1, 0  # Blink's numbers of the themes
COLOURS = {LIGHT: {"back": "ffffff", "c0": "1f5fbf", "c1": "c2571a"},
           DARK: {"back": "14171a", "c0": "7fb2ff", "c1": "ffab6b"}}
HOSTILE = ("<img src=x onerror=\"document.title='taken'\"></script><script>"
           "document.title='taken'</script><b title=\"x\">&amp;\x01")
DIRECTORY = tempfile.TemporaryDirectory(prefix="tocsin-browser-")


def where(name):
    return pathlib.Path(DIRECTORY.name) / name


class Text(html.parser.HTMLParser):
    """Text between tags, without scripts and styles, and the number of each tag."""

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
    """Return the rows of a PNG as bytes, and the bytes per pixel (three or four), for Chromium's
    PNGs."""
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
    before = bytes(size)
    for row in range(height):
        at = row * (size + 1)
        before = unfilter(raw[at], raw[at + 1:at + 1 + size], before, step)
        yield step, before


def unfilter(kind, line, before, step):
    if kind == 0:
        return line
    if kind == 2:
        return before if not any(line) else bytes(
            [(one + above) & 255 for one, above in zip(line, before)])
    done = bytearray(len(line))
    for channel in range(step):
        ours, above = line[channel::step], before[channel::step]
        if kind == 1:
            values = itertools.accumulate(ours, lambda left, one: (left + one) & 255)
        elif kind == 3:
            values = averages(ours, above)
        else:
            values = nearest_of(ours, above)
        done[channel::step] = bytes(values)
    return bytes(done)


def averages(ours, above):
    left = 0
    for one, up in zip(ours, above):
        left = (one + (left + up) // 2) & 255
        yield left


def nearest_of(ours, above):
    left = corner = 0
    for one, up in zip(ours, above):
        to_left, to_up, to_corner = abs(up - corner), abs(left - corner), abs(
            left + up - 2 * corner)
        if to_left <= to_up and to_left <= to_corner:
            left = (one + left) & 255
        elif to_up <= to_corner:
            left = (one + up) & 255
        else:
            left = (one + corner) & 255
        corner = up
        yield left


def colours_of(path):
    count, last, line_count = collections.Counter(), None, None
    for step, line in rows_of_png(path.read_bytes()):
        if line is not last:
            last = line
            line_count = collections.Counter(zip(*(line[n::step] for n in range(3))))
        count.update(line_count)
    return collections.Counter({bytes(colour).hex(): n for colour, n in count.items()})


def look(page, theme=LIGHT):
    """Load a page. Returns its text and tags after the script ran, and the count of each colour."""
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
    """Check that every chart has a canvas, and that curves are in the picture."""
    assert shown.tags["canvas"] == charts, shown.tags["canvas"]
    assert len(re.findall(r"data-chart", str(shown.attributes["figure"]))) == charts
    assert colours[COLOURS[theme]["back"]] > WIDTH * HEIGHT // 4
    assert colours[COLOURS[theme]["c0"]] > 200 and colours[COLOURS[theme]["c1"]] > 200, colours


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return str(one.getsockname()[1])


def measure(command, *arguments):
    port = free_port()
    with subprocess.Popen([PERF, command, "--listen", "127.0.0.1", "--port", port], text=True,
                          stdout=subprocess.PIPE) as server:
        assert "Waits" in server.stdout.readline()
        done = subprocess.run([PERF, command, "--port", port, *arguments, "127.0.0.1"], text=True,
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
    measure("lat", "--op", "send", "--iterations", "3000", "--json", str(where("run.json")),
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


def a_bandwidth_is_told_in_rates():
    page, again, kept = where("rates.html"), where("rates-again.html"), where("rates.json")
    measure("bw", "--size", "64,4KiB", "--duration", "200ms", "--bidirectional", "--json",
            str(kept), "--html", str(page))
    bytes_of(page)
    shown, colours = look(page)
    for words in ("Bandwidth of read", "Bandwidth by size", "mean, Gbit/s", "messages/s",
                  "mean of the server", "time of a window, us", "windows of"):
        assert words in shown.text, words
    # On a busy machine there may be too few windows for a run chart.
    charts = len(re.findall(r"data-chart", str(shown.attributes["figure"])))
    assert charts >= 3 and shown.tags["canvas"] == charts, shown.tags
    assert count_near(colours, bytes.fromhex(COLOURS[LIGHT]["c1"])) > 30
    done = perf("verify", str(kept), "--html", str(again))
    assert done.returncode == 0 and again.read_bytes() == page.read_bytes(), done


def a_comparison_says_which_is_slower_and_shows_each_run():
    page, run = where("compare.html"), str(where("run.json"))
    done = perf("compare", run, "--with", run, "--html", str(page))
    assert done.returncode in (0, 3), done
    bytes_of(page)
    shown, colours = look(page)
    assert "no change within 2 %" in shown.text and "p50 of each run" in shown.text
    assert "A and B are the same runs" in shown.text
    assert "Both: send, closed loop, policy spin" in shown.text
    assert_drawn(shown, colours, LIGHT, 3)


def made_hostile(value, key=""):
    """Put HTML and scripts before each text, except the letters of a heat map."""
    if isinstance(value, dict):
        return {name: made_hostile(inner, name) for name, inner in value.items()}
    if isinstance(value, list):
        return [made_hostile(inner, key) for inner in value]
    return HOSTILE + value if isinstance(value, str) and key != "cells" else value


def result_of(page):
    """Return the JSON in a page, and its kind."""
    found = re.search(r'id="result" data-kind="(\w+)">(.*?)</script>',
                      page.read_text(encoding="utf-8"), re.DOTALL)
    return json.loads(found[2]), found[1]


def hostile_text_stays_text_in_each_kind_of_page():
    done = perf("history", DIRECTORY.name, "--html", str(where("history.html")))
    assert done.returncode in (0, 1, 3), done
    for name, charts in [("run", 2), ("rates", 3), ("policy", 1), ("compare", 3), ("history", 3),
                         ("mesh64", 2)]:
        result, kind = result_of(where(f"{name}.html"))
        page = where(f"hostile-{name}.html")
        data = subprocess.run([SAMPLE, kind], input=json.dumps(made_hostile(result)).encode(),
                              capture_output=True, check=True).stdout
        page.write_bytes(data)
        # Two scripts of the page and its JSON.
        assert data.count(b"<script") == 3 and data.count(b"</script>") == 3
        shown, _ = look(page)
        drawn = len(re.findall(r"data-chart", str(shown.attributes["figure"])))
        assert drawn >= charts and shown.tags["canvas"] == drawn, (name, shown.tags)
        assert shown.text.count("taken") > 10, name  # as text
        assert "cannot be shown" not in shown.text, shown.text
        assert shown.tags["script"] == 3 and shown.tags["b"] == shown.tags["img"] == 0, name


def a_page_of_a_broken_result_says_so():
    page = where("broken.html")
    page.write_bytes(subprocess.run([SAMPLE, "run"], input=b'{"page": {"headline": "An old run."}}',
                                    capture_output=True, check=True).stdout)
    shown, _ = look(page)
    assert "An old run." in shown.text, shown.text
    assert "The rest of this page cannot be shown" in shown.text, shown.text


def a_page_without_scripts_has_its_main_sentence():
    text = where("mesh64.html").read_text(encoding="utf-8")
    assert "<noscript><p>126 of 4031 directions stand out.</p>" in text


def count_near(colours, wanted):
    """Count pixels of a colour, and of those that differ by rounding only."""
    return sum(count for colour, count in colours.items()
               if all(abs(one - other) <= 2 for one, other in zip(bytes.fromhex(colour), wanted)))


def lightest_cell(theme):
    """Return the colour of the smallest value of a matrix."""
    back, full = (bytes.fromhex(COLOURS[theme][name]) for name in ("back", "c0"))
    return [one + (other - one) * 20 / 255 for one, other in zip(back, full)]


def assert_matrices(shown, colours, theme):
    matrices = len(re.findall(r"data-chart", str(shown.attributes["figure"])))
    assert matrices >= 1 and shown.tags["canvas"] == matrices, shown.tags
    assert shown.text.count("from the process of the row to that of the column") == matrices
    assert count_near(colours, lightest_cell(theme)) > 200, colours.most_common(20)


def a_mesh_is_told_in_words_and_a_matrix():
    page, again, kept = where("mesh.html"), where("mesh-again.html"), where("mesh.json")
    done = perf("mesh", "--local", "3", "--iterations", "200", "--device", "soft", "--timeout",
                "20", "--html", str(page), "--json", str(kept))
    assert done.returncode in (0, 1, 3) and "mesh of 3 processes" in done.stdout, done
    bytes_of(page)
    for theme in (LIGHT, DARK):
        shown, colours = look(page, theme)
        for words in ("Mesh of 3 processes", "Shared host", "directions", "6 of 6",
                      "The slowest directions", "Processes"):
            assert words in shown.text, words
        assert re.search("(Nothing|directions) stands? out", shown.text), shown.text
        assert_matrices(shown, colours, theme)
    done = perf("verify", str(kept), "--html", str(again))
    assert done.returncode == 0 and again.read_bytes() == page.read_bytes(), done


def a_mesh_of_64_nodes_with_long_names_is_drawn_in_time():
    page = where("mesh64.html")
    done = subprocess.run([MESH_SAMPLE, "page", "64"], capture_output=True, check=True)
    page.write_bytes(done.stdout)
    text = bytes_of(page)
    shown, colours = look(page, DARK)
    assert_matrices(shown, colours, DARK)
    assert "126 of 4031 directions stand out" in shown.text
    assert "process 62 (gpu-compute-rack03-0062" in shown.text
    assert "gpu-compute-rack01-0017 to gpu-compute-rack03-0062" in shown.text
    assert "</script><b>no port</b>" in shown.text and shown.tags["b"] == 0  # as text
    took = int(re.search(r"'data-drawn-ms': '(\d+)'", str(shown.attributes["html"]))[1])
    tap.comment(f"two matrices of 64 nodes, {len(text)} bytes, drawn in {took} ms")
    assert took <= DRAWN_MS_MAX


def the_picture_of_a_mesh_of_any_size_is_svg_that_a_browser_draws():
    for nodes, bytes_max, words in [
            (3, 10_000, "Mesh of 3: p50"), (16, 40_000, "process 14 (gpu-compute"),
            (64, 60_000, "rack03-0062"), (256, 400_000, ">240<")]:
        path = where(f"mesh{nodes}.svg")
        text = subprocess.run([MESH_SAMPLE, "svg", str(nodes)], capture_output=True,
                              check=True).stdout.decode()
        path.write_text(text)
        root = xml.etree.ElementTree.fromstring(text)
        assert root.tag == "{http://www.w3.org/2000/svg}svg", root.tag
        assert words in text and len(text) <= bytes_max, (nodes, len(text))
        assert "<script" not in text
        assert not re.search(r'(href|url\(|src=)', text)
    for theme in (LIGHT, DARK):
        _, colours = look(where("mesh16.svg"), theme)
        assert count_near(colours, bytes.fromhex("1c4373")) > 10_000, colours.most_common(20)
        assert count_near(colours, bytes.fromhex("c5221f")) > 500, colours.most_common(20)


def policies_are_told_in_sentences_and_points():
    page, again, kept = where("policy.html"), where("policy-again.html"), where("policy.json")
    done = perf("policy", "--rates", "closed,200", "--duration", "100ms", "--device", "soft",
                "--timeout", "20", "--html", str(page), "--json", str(kept))
    assert done.returncode == 0 and "closed loop" in done.stdout, done
    bytes_of(page)
    for theme in (LIGHT, DARK):
        shown, colours = look(page, theme)
        for words in ("Latency against processor time: send", "closed loop:", "200/s:",
                      "All runs", "adaptive", "p50 against processor time", "client %"):
            assert words in shown.text, words
        charts = len(re.findall(r"data-chart", str(shown.attributes["figure"])))
        assert charts >= 1 and shown.tags["canvas"] == charts, shown.tags
        assert count_near(colours, bytes.fromhex(COLOURS[theme]["c0"])) > 30
    done = perf("verify", str(kept), "--html", str(again))
    assert done.returncode == 0 and again.read_bytes() == page.read_bytes(), done


def nothing_is_asked_of_any_network():
    text = where("hostile-run.html").read_text(encoding="utf-8", errors="replace")
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', text)[1]
    assert policy.startswith("default-src 'none';")
    assert not re.search(r"<(link|img|iframe|object|embed)|@import|url\(", text)


tap.run([
    ("a run is told in words and curves, by day and by night",
     a_run_is_told_in_words_and_curves),
    ("a kept file gives the same page", a_kept_file_gives_the_same_page),
    ("a bandwidth is told in rates", a_bandwidth_is_told_in_rates),
    ("a comparison says which is slower and shows each run",
     a_comparison_says_which_is_slower_and_shows_each_run),
    ("a mesh is told in words and a matrix, by day and by night",
     a_mesh_is_told_in_words_and_a_matrix),
    ("the picture of a mesh of any size is SVG that a browser draws",
     the_picture_of_a_mesh_of_any_size_is_svg_that_a_browser_draws),
    ("a mesh of 64 nodes with long names is drawn in time",
     a_mesh_of_64_nodes_with_long_names_is_drawn_in_time),
    ("policies are told in sentences and points", policies_are_told_in_sentences_and_points),
    ("hostile text stays text in each kind of page",
     hostile_text_stays_text_in_each_kind_of_page),
    ("a page of a broken result says so", a_page_of_a_broken_result_says_so),
    ("a page without scripts has its main sentence", a_page_without_scripts_has_its_main_sentence),
    ("nothing is asked of any network", nothing_is_asked_of_any_network),
])
