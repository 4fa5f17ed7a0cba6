# SPDX-License-Identifier: BSD-3-Clause
"""Recordings that NCCL never produces: callbacks in random order with random handles, from a seed.
"""

import random

from recording import INTERFACES

TYPES = ["Group", "Coll", "P2p", "ProxyOp", "ProxyStep", "ProxyCtrl", "KernelCh", "NetPlugin",
         "GroupApi", "CollApi", "P2pApi", "KernelLaunch", "CeColl", "CeSync", "CeBatch",
         "KernelPhase"]
TYPES_OF = {1: 6, 2: 6, 3: 8, 4: 8, 5: 12, 6: 15, 7: 16}
LEVELS = ["launches", "network", "kernels-always", "sampled", "off"]


class Storm:
    def __init__(self, seed):
        self.draw = random.Random(seed)
        self.interface = self.draw.choice(list(INTERFACES))
        self.events = 0

    def handle(self):
        draw = self.draw
        return draw.choice([f"e{draw.randrange(1, self.events + 2)}",
                            f"e{max(1, self.events - draw.randrange(5))}", "0",
                            hex(draw.getrandbits(64)), "0xb4c0000000000000"])

    def init(self, comm):
        if self.interface < 4:
            return f"init {comm}"
        ranks = self.draw.choice([-1, 0, 1, 2, 1 << 20, 1 << 21])
        return (f"init {comm} hash={self.draw.choice([0, 5, 6])} nodes=1 ranks={ranks} "
                f"rank={self.draw.choice([-1, 0, 1, 7])}")

    def fields(self, kind):
        draw = self.draw
        if kind == "Coll":
            words = f" count={draw.getrandbits(10)} sequence={draw.randrange(3)}"
            words += f" channels={draw.choice([0, 1, 1, 2, 64, 65, 255])}"
            func = draw.choice(["AllReduce", "Broadcast", "x" * 300, ""])
            words += f" func={func if self.interface > 1 else draw.randrange(256)}"
            return words + (f" hash={draw.choice([0, 9, 11])}" if self.interface < 4 else "")
        if kind == "KernelCh":
            return f" channel={draw.choice([0, 0, 1, 2, 63, 64, 255])}"
        if kind == "ProxyOp":
            return f" pid={draw.choice([7, 7, 7, 8, 0, -1])}"
        return f" graph={draw.randrange(2)}" if kind in ("CollApi", "P2pApi") else ""

    def start(self, comm):
        self.events += 1
        often = ["Coll"] * 4 + ["ProxyOp"] * 3 + (["KernelCh"] * 4 if self.interface > 2 else [])
        kind = self.draw.choice(TYPES[:TYPES_OF[self.interface]] + often)
        words = f"start event=e{self.events}" + (f" {comm}" if self.draw.random() < .95 else "")
        words += f" type={kind}" + (f" parent={self.handle()}" if self.draw.random() < .9 else "")
        words += f" group={self.handle()}" if self.draw.random() < .5 else ""
        return words + self.fields(kind)

    def callback(self):
        comm, what = f"comm=c{self.draw.randrange(4)}", self.draw.random()
        if what < .05:
            return self.init(comm)
        if what < .09:
            return f"finalize {comm}"
        if what < .55:
            return self.start(comm)
        if what < .85:
            return f"stop event={self.handle()}"
        return (f"state event={self.handle()} state={self.draw.choice([0, 22, -1, 31, 99])}" +
                (f" value={self.draw.getrandbits(64)}" if self.draw.random() < .7 else ""))

    def write(self, path):
        lines = ["tocsin-nccl-recording 1", f"interface {self.interface}", "pid 7"]
        lines += [f"{n} t{self.draw.randrange(3)} {self.callback()}"
                  for n in range(self.draw.choice([50, 500, 2000]))]
        path.write_text("\n".join(lines) + "\n", encoding="ascii")
