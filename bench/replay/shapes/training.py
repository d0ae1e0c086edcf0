"""Training on one stream: steps of any length, experts, pipelines, layers that are gathered or computed again."""
from .program import KIB, MIB, forward_backward


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


SHAPES = [train_any_length, train_any_batch_and_length, train_longer_and_longer, train_experts, train_pipeline, train_sharded,
          train_checkpointed, generate_then_train]
