# SPDX-License-Identifier: BSD-3-Clause
"""Runs in the guest: a cluster that the tests of a program share. Each test leaves the cluster
unchanged. A failed test prints the agents' output, and the next test gets a new cluster."""

import cluster as clusters
import tap

SECONDS = 300  # emulated, on a machine that may be busy


def pairs(agent, node=None):
    return [pair for pair in agent.ask("PAIRS")["pairs"] if node in (None, pair["node"])]


def is_ready(agent, node):
    return any(pair["state"] == "ready" for pair in pairs(agent, node))


def wait_ready(agent, node):
    clusters.wait_until(f"{agent.name} has a pair with {node}", lambda: is_ready(agent, node),
                        SECONDS)


class Shared:
    """A program's cluster class: defines start(), which sets `cluster`, and tear_down() if more
    must be ended."""

    cluster = None

    @classmethod
    def agents(cls):
        """Return all agents, with a ready pair between any two."""
        if cls.cluster is None:
            cls.start()
        cls.cluster.wait_ring()
        for agent in cls.cluster.agents:
            for other in cls.cluster.agents:
                wait_ready(agent, other.name)
        return cls.cluster.agents

    @classmethod
    def tear_down(cls):
        pass

    @classmethod
    def end(cls):
        if cls.cluster is not None:
            cls.cluster.__exit__()
            cls.cluster = None
            cls.tear_down()

    @classmethod
    def told(cls, function):
        def test():
            try:
                function()
            except Exception:
                if cls.cluster is not None:
                    tap.comment(cls.cluster.logs())
                    cls.end()
                raise
        return function.__name__.replace("_", " "), test

    @classmethod
    def run(cls, *tests):
        try:
            tap.run([cls.told(function) for function in tests])
        finally:
            cls.end()
