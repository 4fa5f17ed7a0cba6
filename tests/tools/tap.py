# SPDX-License-Identifier: BSD-3-Clause
"""TAP for tests in Python: one sentence, one function; assert and Skip are the answers."""

import sys
import traceback


class Skip(Exception):
    """Raised by a test that cannot run here; its text is the reason."""


def comment(text):
    for line in text.splitlines():
        print(f"# {line}", flush=True)


def run(tests):
    """Runs (sentence, function) pairs; ends the program."""
    print(f"1..{len(tests)}", flush=True)
    failed = 0
    for number, (sentence, function) in enumerate(tests, 1):
        try:
            function()
            print(f"ok {number} - {sentence}", flush=True)
        except Skip as reason:
            print(f"ok {number} - {sentence} # SKIP {reason}", flush=True)
        except Exception:  # whatever it is, it is this test's failure and not the next one's
            failed += 1
            print(f"not ok {number} - {sentence}", flush=True)
            comment(traceback.format_exc())
    sys.exit(1 if failed else 0)
