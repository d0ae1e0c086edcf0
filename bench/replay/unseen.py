#!/usr/bin/env python3
"""Histories that nobody recorded: shapes of programs, and adversaries of allocators, made from a seed.

usage: bench/replay/unseen.py FOLDER [--seed N] [SHAPE...]

Writes FOLDER/SHAPE.trace for every shape, or those named, in the text form that `tenon replay` reads. The same seed gives the same
files. bench/replay/policies.py and planned.py take them like recorded ones; bench/results/unseen.md is made that way.
"""
import argparse
import pathlib
import random

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30
PAGE = 2 * MIB


class Program:
    """What a program asks for, event by event."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.lines = []
        self.live = {}
        self.count = 0

    def new(self, size, stream=0):
        number, self.count = self.count, self.count + 1
        self.live[number] = int(size)
        self.lines.append(f"a {number} {max(1, int(size))} {stream}")
        return number

    def free(self, *numbers):
        for number in numbers:
            del self.live[number]
            self.lines.append(f"f {number}")

    def use(self, number, stream):
        self.lines.append(f"u {number} {stream}")

    def step(self, name):
        self.lines.append(f"m step {name}")

    def empty_cache(self):
        self.lines.append("e")

    def temporary(self, size, stream=0):
        self.free(self.new(size, stream))

    def resized(self, number, size):
        """As torch.cat: the new one is there before the old one goes."""
        newer = self.new(size)
        self.free(number)
        return newer

    def between(self, low, high):
        """All magnitudes alike."""
        return int(low * (high / low) ** self.random.random())

    def text(self):
        self.free(*list(self.live))
        return "\n".join(self.lines) + "\n"


def forward_backward(p, sizes, temporary=1.0, gradients=None):
    """Saved activations, freed in reverse; a temporary beside each."""
    saved = []
    for size in sizes:
        p.temporary(size * temporary)
        saved.append(p.new(size))
    for i in reversed(range(len(saved))):
        gradient = p.new(sizes[i])
        p.temporary(sizes[i] * temporary)
        if gradients is not None and gradients[i]:
            p.temporary(gradients[i])
        p.free(saved[i], gradient)


def transformer(p, layers, width, tokens, steps, heads=16, vocabulary=32000):
    """Training, `tokens(step)` of (batch, length)."""
    weights = [p.new(2 * size) for _ in range(layers) for size in (3 * width * width, width * width, 8 * width * width, width)]
    weights.append(p.new(2 * vocabulary * width))
    optimizer = []
    for step in range(steps):
        p.step(step)
        batch, length = tokens(step)
        rows = batch * length
        sizes = []
        for _ in range(layers):
            sizes += [2 * rows * width, 6 * rows * width, 2 * batch * heads * length * length, 2 * rows * width, 8 * rows * width]
        sizes.append(2 * rows * vocabulary)
        forward_backward(p, sizes)
        gradients = [p.new(p.live[weight]) for weight in weights]
        if not optimizer:
            optimizer = [p.new(2 * p.live[weight]) for weight in weights for _ in range(2)]
        p.free(*gradients)


def train_any_length(p):
    transformer(p, 12, 768, lambda step: (8, p.random.randrange(64, 1024)), 25)


def train_any_batch_and_length(p):
    def tokens(_):
        length = p.random.choice([128, 192, 256, 384, 512, 777, 1000, 1500])
        return max(1, 8192 // length), length
    transformer(p, 16, 1024, tokens, 20)


def train_longer_and_longer(p):
    transformer(p, 10, 768, lambda step: (8, 64 + 37 * step), 24)


def train_experts(p):
    width, experts = 1024, 16
    for _ in range(8 * experts):
        p.new(2 * 2 * width * 4 * width)
    for step in range(20):
        p.step(step)
        saved = []
        for _ in range(8):
            tokens = 4096
            shares = [p.random.random() ** 3 for _ in range(experts)]
            saved.append(p.new(2 * tokens * width))
            for share in shares:
                rows = 1 + int(tokens * share / sum(shares))
                saved += [p.new(2 * rows * width), p.new(8 * rows * width)]
                p.temporary(2 * rows * width)
        for number in reversed(saved):
            p.temporary(p.live[number])
            p.free(number)


def train_pipeline(p):
    """Micro-batches of different lengths in flight, first in first out."""
    for _ in range(24):
        p.new(24 * MIB)
    for step in range(30):
        p.step(step)
        flying = []
        for _ in range(16):
            length = p.random.randrange(128, 640)
            flying.append([p.new(size * length) for size in (16 * KIB, 5 * KIB, 48 * KIB, 16 * KIB, 64 * KIB) * 3])
            if len(flying) == 6:
                for number in reversed(flying.pop(0)):
                    p.temporary(p.live[number])
                    p.free(number)
        while flying:
            p.free(*reversed(flying.pop(0)))


def train_sharded(p):
    """Parameters are gathered on another stream for the time of a layer, and what they were is freed at once."""
    layers = [p.between(40 * MIB, 400 * MIB) for _ in range(20)]
    for size in layers:
        p.new(size // 8)
    for step in range(12):
        p.step(step)
        saved, length = [], p.random.randrange(512, 2048)
        for order in (range(20), reversed(range(20))):
            for i in order:
                whole = p.new(layers[i], 1)
                p.use(whole, 0)
                activation = p.new(length * 24 * KIB)
                p.temporary(length * 48 * KIB)
                if isinstance(order, range):
                    saved.append(activation)
                else:
                    p.new(layers[i] // 8, 1) if step == 0 else p.temporary(layers[i] // 8, 1)
                    p.free(activation, saved.pop())
                p.free(whole)


def train_checkpointed(p):
    for _ in range(32):
        p.new(60 * MIB)
    for step in range(15):
        p.step(step)
        rows = p.random.randrange(1024, 4096)
        kept = [p.new(rows * 8 * KIB) for _ in range(32)]
        for number in reversed(kept):
            forward_backward(p, [rows * size for size in (8 * KIB, 24 * KIB, 8 * KIB, 22 * KIB, 22 * KIB)])
            p.free(number)


def generate_then_train(p):
    """Caches that grow by a token at a time, then steps of training: phases that want other sizes."""
    for _ in range(24):
        p.new(50 * MIB)
    for round_ in range(4):
        p.step(f"{round_} generates")
        batch = p.random.choice([8, 12, 16, 24])
        prompt = p.random.randrange(64, 256)
        caches = [p.new(batch * prompt * 2 * KIB) for _ in range(24)]
        for token in range(1, 90):
            for i, cache in enumerate(caches):
                caches[i] = p.resized(cache, batch * (prompt + token) * 2 * KIB)
            p.temporary(batch * 64 * KIB)
        p.free(*caches)
        if round_ % 2:
            p.empty_cache()
        for step in range(3):
            p.step(f"{round_} trains {step}")
            forward_backward(p, [batch * (prompt + 90) * size for size in (4 * KIB, 12 * KIB, 16 * KIB) * 24])


def serve(p, arrivals, steps, layers, of_request, grow):
    """An inference server: requests come, grow and go."""
    weights = [p.new(size) for _ in range(layers) for size in (96 * MIB, 48 * MIB)]
    running = []
    for step in range(steps):
        while len(running) < arrivals(step):
            running.append({"left": p.random.randrange(10, 200), "length": p.random.randrange(16, 2048), "blocks": []})
            of_request(running[-1])
        if step % 50 == 0:
            p.step(step)
        rows = len(running)
        hidden = [p.new(rows * size) for size in (8 * KIB, 24 * KIB, 44 * KIB)]
        for request in list(running):
            request["length"] += 1
            request["left"] -= 1
            grow(request)
            if request["left"] == 0:
                p.free(*request["blocks"])
                running.remove(request)
        p.temporary(rows * 128 * KIB)
        p.free(*hidden)
    return weights


def serve_cat(p):
    def of_request(request):
        request["blocks"] = [p.new(request["length"] * 4 * KIB) for _ in range(6)]

    def grow(request):
        request["blocks"] = [p.resized(block, request["length"] * 4 * KIB) for block in request["blocks"]]
    serve(p, lambda step: 4 + step // 60 % 6, 500, 8, of_request, grow)


def serve_doubling(p):
    def of_request(request):
        request["room"] = 1 << request["length"].bit_length()
        request["blocks"] = [p.new(request["room"] * 4 * KIB) for _ in range(8)]

    def grow(request):
        if request["length"] <= request["room"]:
            return
        request["room"] *= 2
        request["blocks"] = [p.resized(block, request["room"] * 4 * KIB) for block in request["blocks"]]
    serve(p, lambda step: 24, 1500, 12, of_request, grow)


def serve_pages(p, page=192 * KIB):
    def of_request(request):
        request["blocks"] = [p.new(page) for _ in range(request["length"] // 16)]

    def grow(request):
        if request["length"] % 16 == 0:
            request["blocks"].append(p.new(page))
    serve(p, lambda step: 10 + 50 * (step // 200 % 2), 1600, 10, of_request, grow)


def serve_prompts(p):
    """Long prompts at once beside short ones: activations of any size, caches that stay."""
    def of_request(request):
        rows = request["length"]
        forward = [p.new(rows * size) for size in (8 * KIB, 24 * KIB, 44 * KIB)]
        p.temporary(rows * rows * 16)
        request["blocks"] = [p.new((rows + 256) * 4 * KIB) for _ in range(8)]
        p.free(*forward)
    serve(p, lambda step: 16, 1200, 10, of_request, lambda request: None)


def beam_search(p):
    for _ in range(40):
        p.new(20 * MIB)
    for sentence in range(20):
        p.step(sentence)
        beams = p.random.choice([4, 5, 8])
        caches = [p.new(beams * 16 * KIB) for _ in range(24)]
        for token in range(2, p.random.randrange(30, 70)):
            order = [p.resized(cache, beams * token * 16 * KIB) for cache in caches]  # reordered
            caches = [p.resized(cache, beams * (token + 1) * 16 * KIB) for cache in order]
            p.temporary(beams * 200 * KIB)
        p.free(*caches)


def pictures_of_any_size(p):
    for _ in range(120):
        p.new(p.between(100 * KIB, 30 * MIB))
    for step in range(60):
        p.step(step)
        area = p.random.randrange(320, 1333) * p.random.randrange(320, 1333)
        sizes = [area * channels * 2 // shrink for channels, shrink in
                 ((64, 4), (64, 4), (256, 16), (256, 16), (512, 64), (512, 64), (1024, 256), (1024, 256), (2048, 1024))]
        forward_backward(p, sizes, temporary=0.7)
        boxes = [p.new(p.between(64, 400 * KIB)) for _ in range(p.random.randrange(20, 300))]
        p.random.shuffle(boxes)
        p.free(*boxes)


def diffusion(p):
    for _ in range(200):
        p.new(p.between(200 * KIB, 60 * MIB))
    for image in range(8):
        p.step(image)
        side = p.random.choice([512, 640, 768, 896, 1024, 1280])
        latent = p.new(side * side // 2)
        for _ in range(10):
            skips = [p.new(side * side * channels // 64) for channels in (320, 320, 320, 160, 160, 80, 80)]
            p.temporary(side * side * 20)
            for skip in reversed(skips):
                p.temporary(2 * p.live[skip])
                p.free(skip)
            latent = p.resized(latent, side * side // 2)
        decoded = [p.new(side * side * channels) for channels in (8, 64, 256, 512)]
        p.free(*decoded, latent)


def graphs_sampled(p):
    features = p.new(3 * GIB)
    for step in range(150):
        p.step(step)
        rows = [p.between(500, 4000), p.between(4000, 60000), p.between(60000, 600000)]
        forward_backward(p, [size for row in rows for size in (row * 512, row * 16, row * 1024)])
        p.temporary(rows[2] * 400)
    p.free(features)


def sparse_tables(p):
    for _ in range(26):
        p.new(p.between(1 * KIB, 900 * MIB))
    for step in range(120):
        p.step(step)
        gradients = [(p.new(p.between(300, 60000) * 64), p.new(p.between(300, 60000) * 8)) for _ in range(26)]
        forward_backward(p, [2048 * width * 4 for width in (512, 256, 64, 1024, 1024, 512, 1)])
        for pair in gradients:
            p.free(*pair)


def models_come_and_go(p):
    loaded = []
    for round_ in range(40):
        p.step(round_)
        if len(loaded) >= 3:
            p.free(*loaded.pop(p.random.randrange(3)))
        width = p.random.choice([768, 1024, 1536, 2048, 2560])
        loaded.append([p.new(size * width * width) for _ in range(p.random.randrange(12, 40)) for size in (6, 2, 8, 8)])
        for _ in range(30):
            rows = p.random.randrange(1, 2000)
            forward = [p.new(rows * width * 2) for _ in range(4)]
            p.temporary(rows * width * 8)
            p.free(*forward)


def replacing(p, live, events, size, streams=1, uses=0.0):
    """Of `live` blocks a random one is replaced, again and again."""
    blocks = []
    for event in range(events):
        if event % 4000 == 0:
            p.step(event)
        if len(blocks) == live:
            victim = p.random.randrange(live)
            blocks[victim], blocks[-1] = blocks[-1], blocks[victim]
            p.free(blocks.pop())
        stream = p.random.randrange(streams)
        blocks.append(p.new(size(event), stream))
        if p.random.random() < uses:
            p.use(blocks[-1], p.random.randrange(streams))


def huge(p):
    replacing(p, 7, 600, lambda _: p.between(1 * GIB, 9 * GIB))


def huge_beside_tiny(p):
    replacing(p, 2000, 20000, lambda _: p.between(1 * GIB, 4 * GIB) if p.random.random() < 0.002 else p.between(100, 300 * KIB))


def tiny(p):
    replacing(p, 30000, 90000, lambda _: p.between(16, 8 * KIB))


def of_all_sizes(p):
    replacing(p, 300, 30000, lambda _: p.between(256, 256 * MIB))


def about_a_page(p):
    replacing(p, 800, 30000, lambda _: p.random.randrange(1 * MIB, 4 * MIB))


def streams(p):
    replacing(p, 400, 30000, lambda _: p.between(4 * KIB, 64 * MIB), streams=8, uses=0.2)


def tides(p):
    """Sizes and numbers rise and fall, with what is left of one tide in the way of the next."""
    kept = []
    for tide in range(24):
        p.step(tide)
        size = [300 * KIB, 5 * MIB, 40 * MIB, 2 * MIB + 1, 17 * MIB, 900 * KIB][tide % 6]
        blocks = [p.new(size * (0.7 + 0.6 * p.random.random())) for _ in range(6 * GIB // size)]
        p.random.shuffle(blocks)
        kept.append(blocks[:len(blocks) // 20])
        p.free(*blocks[len(blocks) // 20:])
        if len(kept) == 4:
            p.free(*kept.pop(0))


def adversary_half_pages(p):
    """One block in two goes, and the others hold every page: nothing that is longer than half a page fits between."""
    blocks = [p.new(PAGE // 2) for _ in range(4096)]
    p.step("pinned")
    p.free(*blocks[::2])
    for _ in range(2048 // 4 - 8):
        p.new(4 * MIB)


def adversary_pins(p):
    """Small ones between large ones stay when those go."""
    pins = []
    for size in (3 * MIB, 5 * MIB, 9 * MIB, 17 * MIB, 33 * MIB, 65 * MIB):
        p.step(size // MIB)
        blocks = []
        for _ in range(4 * GIB // size):
            blocks.append(p.new(size))
            pins.append(p.new(p.random.choice([512, 4 * KIB, 100 * KIB, 600 * KIB])))
        p.free(*blocks)


def adversary_of_robson(p):
    """Robson's: of blocks of each power of two so many stay that the next power finds no hole. The live bytes never rise above 2 GiB."""
    most, live, blocks = 2 * GIB, 0, []
    for power in range(19, 30):
        size = 1 << power
        p.step(power)
        # Of neighbours one stays: what lies at every second place of this size.
        place, kept, seen = 0, [], set()
        for number, at in blocks:
            if at // size in seen:
                live -= p.live[number]
                p.free(number)
            else:
                seen.add(at // size)
                kept.append((number, at))
        blocks = kept
        place = max((at for _, at in blocks), default=0) + size
        while live + size <= most:
            blocks.append((p.new(size), place))
            live += size
            place += size


def adversary_just_too_long(p):
    """Each round wants a little more than each hole that the one before it left."""
    fixed = []
    size = 1 * MIB + 512
    for round_ in range(40):
        p.step(round_)
        blocks = [p.new(size) for _ in range(int(2 * GIB / size))]
        fixed.append(blocks[len(blocks) // 2])
        p.free(*[block for block in blocks if block != fixed[-1]])
        size = int(size * 1.07) + 512


SHAPES = [train_any_length, train_any_batch_and_length, train_longer_and_longer, train_experts, train_pipeline, train_sharded,
          train_checkpointed, generate_then_train, serve_cat, serve_doubling, serve_pages, serve_prompts, beam_search,
          pictures_of_any_size, diffusion, graphs_sampled, sparse_tables, models_come_and_go, huge, huge_beside_tiny, tiny,
          of_all_sizes, about_a_page, streams, tides, adversary_half_pages, adversary_pins, adversary_of_robson,
          adversary_just_too_long]


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--seed", type=int, default=47)
    parser.add_argument("shapes", nargs="*")
    asked = parser.parse_args()
    by_name = {shape.__name__: shape for shape in SHAPES}
    for name in asked.shapes:
        if name not in by_name:
            parser.error(f"unknown shape '{name}'; there are {', '.join(by_name)}")
    asked.folder.mkdir(parents=True, exist_ok=True)
    for name in asked.shapes or by_name:
        program = Program(asked.seed)
        by_name[name](program)
        (asked.folder / f"{name}.trace").write_text(f"# name: {name}\n# what: made by unseen.py, seed {asked.seed}\n" + program.text(),
                                                    encoding="ascii")


if __name__ == "__main__":
    main()
