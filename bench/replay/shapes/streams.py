"""Training with a second stream: gradients reduced, batches loaded, activations moved away."""
from .program import KIB, MIB, forward_backward


def block_sizes(rows, width, heads, batch, length, fused):
    """What a transformer block saves for its backward, 2 bytes an element."""
    scores = [] if fused else [2 * batch * heads * length * length] * 2
    return [2 * rows * width, 6 * rows * width, *scores, 2 * rows * width, 2 * rows * width, 8 * rows * width, 8 * rows * width,
            rows * width]


def train_buckets(p):
    """DistributedDataParallel: gradients are copied to buckets of 25 MiB, which another stream reduces."""
    width, layers = 1280, 18
    weights = [p.new(2 * size) for _ in range(layers) for size in (3 * width * width, width * width, 8 * width * width, width, width)]
    buckets, filled = [], 0
    for weight in weights:
        filled += p.live[weight]
        if filled >= 25 * MIB:
            buckets.append(p.new(filled))
            filled = 0
    states = []
    for step in range(16):
        p.step(step)
        batch, length = 4, p.random.choice([256, 384, 512, 512, 640])
        rows = batch * length
        saved = [[p.new(size) for size in block_sizes(rows, width, 20, batch, length, False)] for _ in range(layers)]
        logits = [p.new(2 * rows * 50257), p.new(4 * rows * 50257)]
        gradients = []
        for layer in reversed(range(layers)):
            if layer == layers - 2:
                p.free(*logits)
            for number in reversed(saved[layer]):
                p.temporary(p.live[number])
                p.free(number)
            gradients += [p.new(p.live[weight]) for weight in weights[5 * layer:5 * layer + 5]]
            flat = p.new(sum(p.live[g] for g in gradients[-5:]), 1)
            p.use(flat, 0)
            p.free(flat)
        if not states:
            states = [p.new(2 * p.live[weight]) for weight in weights for _ in range(2)]
        for gradient in gradients:
            p.temporary(2 * p.live[gradient])
        p.free(*gradients)


def load_ahead(p):
    """Batches of any size are copied by another stream, two of them ahead of the step that uses them."""
    weights = [p.new(p.between(300 * KIB, 40 * MIB)) for _ in range(60)]
    ahead = []
    for step in range(50):
        p.step(step)
        while len(ahead) < 3:
            pixels = p.random.randrange(256, 800) * p.random.randrange(256, 800)
            ahead.append((pixels, [p.new(16 * pixels * 3, 1), p.new(16 * 8, 1), p.new(p.random.randrange(1, 4000) * 40, 1)]))
        pixels, batch = ahead.pop(0)
        for number in batch:
            p.use(number, 0)
        normal = p.new(16 * pixels * 12)
        forward_backward(p, [16 * pixels * channels // shrink * 2 for channels, shrink in
                             ((32, 4), (32, 4), (64, 16), (64, 16), (128, 64), (256, 256), (512, 1024))])
        p.free(normal, *batch)
    p.free(*weights)


def train_offloaded(p):
    """Activations go to the host while the forward runs, and come back on another stream, one layer ahead."""
    layers, width = 30, 2048
    for _ in range(layers):
        p.new(24 * width * width)
    for step in range(12):
        p.step(step)
        rows = 2 * p.random.randrange(700, 2048)
        leaving = []
        for _ in range(layers):
            activation = p.new(4 * rows * width)
            p.temporary(16 * rows * width)
            p.use(activation, 1)
            leaving.append(activation)
            if len(leaving) > 2:
                p.free(leaving.pop(0))
        p.free(*leaving)
        back = [p.new(4 * rows * width, 1) for _ in range(2)]
        for layer in range(layers):
            now = back.pop(0)
            if layer + 2 < layers:
                back.append(p.new(4 * rows * width, 1))
            p.use(now, 0)
            forward_backward(p, [16 * rows * width, 8 * rows * width, 4 * rows * width])
            p.free(now)


SHAPES = [train_buckets, load_ahead, train_offloaded]
