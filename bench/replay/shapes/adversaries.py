"""Random replacement, which no program does, and adversaries."""
from .program import GIB, KIB, MIB, PAGE


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


SHAPES = [huge, huge_beside_tiny, tiny, of_all_sizes, about_a_page, streams, tides, adversary_half_pages, adversary_pins,
          adversary_of_robson, adversary_just_too_long]
