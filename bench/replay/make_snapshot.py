#!/usr/bin/env python3
"""Writes a large PyTorch memory snapshot by repeating a recorded history: the input of the reader's speed figures.

    bench/replay/make_snapshot.py examples/traces/gpt2_adam.trace.gz /tmp/big.pickle --bytes 1GiB

The keys, the order of the pickle's operators and the sharing are those of torch.cuda.memory._dump_snapshot (2.15): every
entry has a list of frames of its own, whose dicts are shared between entries. --frames copied writes each frame anew, as
after a copy.deepcopy or a trip through JSON, and --frames none records no stacks. Only the standard library is needed.
"""
import argparse
import gzip
import random
import struct

UNITS = {"KiB": 2**10, "MiB": 2**20, "GiB": 2**30}
ALIGN = 512


def parse_size(text):
    for unit, factor in UNITS.items():
        if text.endswith(unit):
            return int(float(text[: -len(unit)]) * factor)
    return int(text)


def integer(value):
    if 0 <= value < 256:
        return b"K" + bytes([value])
    if 0 <= value < 65536:
        return b"M" + struct.pack("<H", value)
    if -(2**31) <= value < 2**31:
        return b"J" + struct.pack("<i", value)
    raw = value.to_bytes(value.bit_length() // 8 + 1, "little", signed=True)
    return b"\x8a" + bytes([len(raw)]) + raw


class Writer:
    """Protocol 4 by hand: a gigabyte through the pickle module would take its memo's weight in memory."""

    def __init__(self, out):
        self.out = out
        self.written = 0
        self.memoised = 0
        self.texts = {}

    def raw(self, data):
        self.out.write(data)
        self.written += len(data)

    def get(self, index):
        return b"h" + bytes([index]) if index < 256 else b"j" + struct.pack("<I", index)

    def memo(self):
        self.memoised += 1
        return b"\x94"

    def text(self, value):
        if value in self.texts:
            return self.get(self.texts[value])
        data = value.encode()
        self.texts[value] = self.memoised
        size = b"\x8c" + bytes([len(data)]) if len(data) < 256 else b"X" + struct.pack("<I", len(data))
        return size + data + self.memo()


def read_history(path):
    """(kind, address, size, stream) of every event; blocks are put one after the other, a freed range serves its size."""
    events, live, free, top, peak = [], {}, {}, 0x7F0000000000, 0
    opened = gzip.open(path, "rt") if path.endswith(".gz") else open(path)
    with opened as lines:
        for line in lines:
            fields = line.split()
            if not fields:
                continue
            if fields[0] == "a":
                size, stream = int(fields[2]), int(fields[3])
                rounded = (size + ALIGN - 1) // ALIGN * ALIGN
                places = free.setdefault(rounded, [])
                if places:
                    address = places.pop()
                else:
                    address, top = top, top + rounded
                live[fields[1]] = (address, size, stream, rounded)
                events.append(("alloc", address, size, stream))
            elif fields[0] == "f":
                address, size, stream, rounded = live.pop(fields[1])
                free[rounded].append(address)
                events.append(("free", address, size, stream))
    for address, size, stream, rounded in list(live.values()):  # each round ends as it began: with nothing alive
        events.append(("free", address, size, stream))
    return events, 0x7F0000000000, top


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("history")
    parser.add_argument("out")
    parser.add_argument("--bytes", default="1GiB")
    parser.add_argument("--frames", choices=["shared", "copied", "none"], default="shared")
    parser.add_argument("--depth", type=int, default=24, help="frames of a stack")
    options = parser.parse_args()
    goal = parse_size(options.bytes)
    events, base, top = read_history(options.history)
    chance = random.Random(47)
    opener = gzip.open if options.out.endswith(".gz") else open
    with opener(options.out, "wb") as out:
        w = Writer(out)
        w.raw(b"\x80\x04}" + w.memo() + b"(")
        segment_bytes = top - base

        def pair(key, value):
            return w.text(key) + value

        # Texts and frames come first, so that a round of entries refers to a memo that is the same in every round.
        texts = ["texts_of_this_file", "frames_of_this_file", "segments", "device_traces", "allocator_settings"]
        texts += ["device", "address", "total_size", "allocated_size", "active_size", "requested_size", "stream", "state"]
        texts += ["segment_type", "large", "segment_pool_id", "is_expandable", "blocks", "inactive"]
        texts += ["action", "addr", "size", "time_us", "compile_context", "user_metadata", "frames", "N/A", ""]
        texts += ["alloc", "free_requested", "free_completed", "segment_alloc", "name", "filename", "line"]
        texts += [f"forward_{i}" for i in range(90)]
        texts += [f"/usr/lib/python3/dist-packages/package_{i % 37}/module_{i % 61}.py" for i in range(400)]
        first = w.text(texts[0])
        listed = b"]" + w.memo()
        w.raw(first + listed + b"(" + b"".join(w.text(text) for text in texts) + b"e")
        w.raw(w.text("frames_of_this_file") + b"]" + w.memo() + b"(")
        frames, bodies = [], []
        for i in range(400):
            body = (
                w.text("name") + w.text(f"forward_{i % 90}") + w.text("filename")
                + w.text(f"/usr/lib/python3/dist-packages/package_{i % 37}/module_{i % 61}.py")
                + w.text("line") + integer(17 * i % 2500)
            )
            bodies.append(body)
            frames.append(w.memoised)
            w.raw(b"}" + w.memo() + b"(" + body + b"u")
        w.raw(b"e")
        stacks = []
        for _ in range(600):
            chosen = [chance.randrange(len(frames)) for _ in range(options.depth)]
            stacks.append(chosen)

        def stack(number):
            if options.frames == "none":
                return b"]" + w.memo()
            if options.frames == "shared":
                return b"]" + w.memo() + b"(" + b"".join(w.get(frames[i]) for i in stacks[number]) + b"e"
            items = b""
            for i in stacks[number]:
                items += b"}" + w.memo() + b"(" + bodies[i] + b"u"
            return b"]" + w.memo() + b"(" + items + b"e"

        def entry(action, address, size, stream, time, number):
            return (
                b"}" + w.memo() + b"(" + pair("action", w.text(action)) + pair("addr", integer(address))
                + pair("size", integer(size)) + pair("stream", integer(stream)) + pair("time_us", integer(time))
                + pair("compile_context", w.text("N/A")) + pair("user_metadata", w.text(""))
                + pair("frames", stack(number)) + b"u"
            )

        w.raw(pair("segments", b"]" + w.memo()))
        block = b"}" + w.memo() + b"(" + pair("address", integer(base)) + pair("size", integer(segment_bytes))
        block += pair("requested_size", integer(0)) + pair("state", w.text("inactive")) + pair("frames", b"]" + w.memo())
        w.raw(
            b"(}" + w.memo() + b"(" + pair("device", integer(0)) + pair("address", integer(base))
            + pair("total_size", integer(segment_bytes)) + pair("allocated_size", integer(0))
            + pair("active_size", integer(0)) + pair("requested_size", integer(0)) + pair("stream", integer(0))
            + pair("segment_type", w.text("large")) + pair("segment_pool_id", b"K\x00K\x00\x86" + w.memo())
            + pair("is_expandable", b"\x89") + pair("frames", b"]" + w.memo())
            + pair("blocks", b"]" + w.memo() + b"(" + block + b"ue") + b"ue"
        )
        w.raw(pair("device_traces", b"]" + w.memo() + b"(]" + w.memo()))
        w.raw(b"(" + entry("segment_alloc", base, segment_bytes, 0, 1, 0) + b"e")

        # One round as bytes, in batches of a thousand entries as the pickle module makes them. Every round is the same.
        pieces, batch, count = [], [], 0
        for number, (kind, address, size, stream) in enumerate(events):
            which = (size * 2654435761 + address) % len(stacks)
            actions = ["alloc"] if kind == "alloc" else ["free_requested", "free_completed"]
            for action in actions:
                batch.append(entry(action, address, size, stream, 1700000000000000 + number, which))
                count += 1
                if len(batch) == 1000:
                    pieces.append(b"(" + b"".join(batch) + b"e")
                    batch = []
        if batch:
            pieces.append(b"(" + b"".join(batch) + b"e")
        rounds = 0
        while w.written < goal:
            for piece in pieces:
                w.raw(b"\x95" + struct.pack("<Q", len(piece)) + piece)
            rounds += 1
        w.raw(b"e" + pair("allocator_settings", b"}" + w.memo()) + b"u.")
    print(f"{options.out}: {w.written} bytes before compression, {rounds} rounds of {count} entries")


if __name__ == "__main__":
    main()
