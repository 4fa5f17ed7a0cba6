# SPDX-License-Identifier: BSD-3-Clause
"""Recordings of NCCL's callbacks, generated from the field lists of each interface. They contain
what a rank would record for the requested calls. No GPU has run them."""

INTERFACES = range(1, 8)
# Numbers of NCCL's interface 1, where later interfaces have words.
FUNCS = {"Broadcast": 0, "Reduce": 1, "AllGather": 2, "ReduceScatter": 3, "AllReduce": 4,
         "Send": 6, "Recv": 7}
DATATYPES = {"ncclInt8": 0, "ncclInt32": 2, "ncclFloat32": 7, "ncclBfloat16": 9}


class Recording:
    """A recording: lines in calling order. Each method writes what NCCL calls for one action."""

    def __init__(self, interface, pid=4242):
        self.interface = interface
        self.lines = ["tocsin-nccl-recording 1", "# made by hand: no GPU has run this",
                      f"interface {interface}", f"pid {pid}"]
        self.pid = pid
        self.time = 0
        self.events = 0
        self.comms = {}

    def line(self, thread, text):
        self.time += 1000
        self.lines.append(f"{self.time} t{thread} {text}")

    def init(self, comm=0, size=2, rank=0, digest=0xABCDEF0123456789, name=None):
        text = f"init comm=c{comm}"
        if self.interface >= 4:
            text += f" hash=0x{digest:x} nodes=1 ranks={size} rank={rank}"
            text += f" name={name}" if name else ""
        self.comms[comm] = {"hash": digest, "rank": rank, "sequence": {}, "name": name}
        self.line(0, text)

    def start(self, thread, comm, kind, parent=None, group=None, rank=0, **fields):
        self.events += 1
        event = f"e{self.events}"
        text = f"start event={event}"
        text += f" comm=c{comm}" if comm is not None else ""
        text += f" type={kind}"
        text += f" parent={parent}" if parent else ""
        text += f" group={group}" if group and self.interface >= 5 else ""
        text += f" rank={rank}"
        for name, value in fields.items():
            text += f" {name}={value}"
        self.line(thread, text)
        return event

    def stop(self, thread, event):
        self.line(thread, f"stop event={event}")

    def state(self, thread, event, state, value=None):
        self.line(thread, f"state event={event} state={state}" +
                  ("" if value is None else f" value={value}"))

    def finalize(self, comm=0):
        self.line(0, f"finalize comm=c{comm}")

    def _words(self, func, datatype):
        if self.interface == 1:
            return FUNCS[func], DATATYPES[datatype]
        return func, datatype

    def _who(self, comm):
        if self.interface > 3:
            return {}
        known = self.comms[comm]
        who = {"hash": f"0x{known['hash']:x}"}
        if known["name"]:
            who["name"] = known["name"]
        return who

    def launch(self, comm=0, func="AllReduce", count=1024, datatype="ncclFloat32", root=0,
               channels=2, graph=False, thread=0):
        """Record a collective call. Returns the event of the operation."""
        known = self.comms[comm]
        api = call = None
        if self.interface >= 5:
            api = self.start(thread, comm, "GroupApi", graph=int(graph), depth=1)
            call = self.start(thread, comm, "CollApi", api, func=func, count=count,
                              datatype=datatype, root=root, graph=int(graph))
            self.stop(thread, call)
        group = self.start(thread, comm, "Group")
        sequence = known["sequence"].get(func, 0)
        if not graph:
            known["sequence"][func] = sequence + 1
        word, number = self._words(func, datatype)
        parent = call if self.interface >= 5 else group
        event = self.start(thread, comm, "Coll", parent, group, rank=known["rank"],
                           **self._who(comm), sequence=sequence, func=word, count=count,
                           root=root, datatype=number, channels=channels, warps=16)
        self.stop(thread, event)
        self.stop(thread, group)
        if api:
            self.stop(thread, api)
        return event

    def send(self, peer, comm=0, func="Send", count=64, datatype="ncclInt8", channels=1):
        known = self.comms[comm]
        group = self.start(0, comm, "Group")
        word, number = self._words(func, datatype)
        fields = {**self._who(comm), "func": word, "datatype": number, "count": count,
                  "peer": peer}
        if self.interface >= 5:
            fields["channels"] = channels
        event = self.start(0, comm, "P2p", group, group, rank=known["rank"], **fields)
        self.stop(0, event)
        self.stop(0, group)
        return event

    def kernel_begin(self, operation, channel, comm=0):
        fields = {"channel": channel}
        if self.interface >= 4:
            fields["gpu"] = self.time
        return self.start(1, comm, "KernelCh", operation, rank=self.comms[comm]["rank"], **fields)

    def kernel_end(self, kernel):
        self.state(1, kernel, 22, self.time if self.interface >= 4 else None)
        self.stop(1, kernel)

    def kernels(self, operation, channels=2, comm=0):
        begun = [self.kernel_begin(operation, channel, comm) for channel in range(channels)]
        for kernel in begun:
            self.kernel_end(kernel)

    def proxy_begin(self, operation, channel=0, peer=1, send=1, pid=None, comm=0):
        return self.start(1, comm, "ProxyOp", operation, rank=self.comms[comm]["rank"],
                          pid=self.pid if pid is None else pid, channel=channel, peer=peer,
                          steps=4, chunk=131072, send=send)

    def text(self):
        return "\n".join(self.lines) + "\n"

    def write(self, path):
        with open(path, "w", encoding="ascii") as file:
            file.write(self.text())
        return path
