"""Servers, decoders, pictures, graphs, models that come and go."""
from .program import GIB, KIB, MIB, forward_backward


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


def adapters_swapped(p):
    """A server: low-rank adapters of a few ranks come and go beside a base model; requests of any length."""
    for _ in range(32):
        p.new(200 * MIB)
    loaded = []
    for request in range(300):
        if request % 20 == 0:
            p.step(request)
        if request % 4 == 0:
            if len(loaded) == 6:
                p.free(*loaded.pop(p.random.randrange(6)))
            rank = p.random.choice([8, 16, 32, 64])
            loaded.append([p.new(2 * rank * 4096) for _ in range(32 * 4)])
        rows = p.random.randrange(16, 3000)
        caches = [p.new(rows * 4096) for _ in range(32)]
        for _ in range(8):
            p.temporary(rows * 11008 * 2)
            p.temporary(rows * 4096 * 2)
        p.free(*caches)


def speculative(p):
    """A small model drafts, a large one checks; both caches grow by copies, and shrink when a draft is refused."""
    for size in [180 * MIB] * 24 + [20 * MIB] * 6:
        p.new(size)
    for prompt in range(10):
        p.step(prompt)
        batch, length = p.random.choice([1, 2, 4]), p.random.randrange(100, 1500)
        large = [p.new(batch * length * 4 * KIB) for _ in range(24)]
        small = [p.new(batch * length * 1 * KIB) for _ in range(6)]
        for _ in range(20):
            for draft in range(1, 6):
                small = [p.resized(cache, batch * (length + draft) * 1 * KIB) for cache in small]
            large = [p.resized(cache, batch * (length + 5) * 4 * KIB) for cache in large]
            p.temporary(batch * 5 * 32000 * 4)
            length += p.random.randrange(1, 6)
            small = [p.resized(cache, batch * length * 1 * KIB) for cache in small]
            large = [p.resized(cache, batch * length * 4 * KIB) for cache in large]
        p.free(*small, *large)


def pictures_in_tiles(p):
    """Upscaling: tiles of one size, and those at the edges of any, of pictures of any size, whose result is kept until it is whole."""
    for _ in range(60):
        p.new(p.between(1 * MIB, 30 * MIB))
    for picture in range(12):
        p.step(picture)
        height, width = p.random.randrange(500, 2400), p.random.randrange(500, 2400)
        whole = p.new(height * width * 16 * 3 * 2)
        for top in range(0, height, 512):
            for left in range(0, width, 512):
                area = min(512, height - top) * min(512, width - left)
                features = [p.new(area * 64 * 2) for _ in range(3)]
                for _ in range(8):
                    p.temporary(area * 64 * 2)
                    p.temporary(area * 32 * 2)
                large = p.new(area * 16 * 3 * 2)
                p.free(*features, large)
        p.temporary(p.live[whole] // 2)
        p.free(whole)


def chat_server(p):
    """Prompts in chunks beside decoding, prefixes that are kept for later requests and dropped when there are too many."""
    for _ in range(40):
        p.new(160 * MIB)
    prefixes, running = [], []
    for tick in range(900):
        if tick % 60 == 0:
            p.step(tick)
        if p.random.random() < 0.15:
            length = p.random.randrange(64, 4000)
            request = [p.new(length * 2 * KIB) for _ in range(40)]
            for begin in range(0, length, 1024):
                rows = min(1024, length - begin)
                hidden = p.new(rows * 10240)
                p.temporary(rows * 40960)
                p.temporary(rows * 27648)
                p.free(hidden)
            running.append((request, tick + p.random.randrange(10, 150)))
        for request, end in [entry for entry in running if entry[1] <= tick]:
            prefixes.append(request)
            running.remove((request, end))
        while len(prefixes) > 8:
            p.free(*prefixes.pop(p.random.randrange(4)))
        if running:
            p.temporary(len(running) * 10240)
            p.temporary(len(running) * 128000 * 4)


SHAPES = [serve_cat, serve_doubling, serve_pages, serve_prompts, beam_search, pictures_of_any_size, diffusion, graphs_sampled,
          sparse_tables, models_come_and_go, adapters_swapped, speculative, pictures_in_tiles, chat_server]
