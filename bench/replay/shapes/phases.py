"""Training whose steps are of several kinds: evaluations, two models in turn, rollouts, one model after another."""
from .program import KIB, MIB, forward_backward


def train_and_evaluate(p):
    """Every fifth epoch is an evaluation, at another batch, without anything saved."""
    weights = [p.new(size) for _ in range(40) for size in (9 * MIB, 300 * KIB, 4 * KIB, 4 * KIB)]
    states = [p.new(p.live[weight]) for weight in weights for _ in range(2)]
    sizes = [size * MIB for size in (12, 12, 3, 24, 24, 6, 6, 12, 3, 3)] * 4
    for step in range(40):
        p.step(step)
        if step % 5 == 4:
            for _ in range(6):
                before = p.new(4 * sizes[0])
                for size in sizes:
                    after = p.new(4 * size)
                    p.temporary(2 * size)
                    p.free(before)
                    before = after
                p.free(before)
            continue
        share = 1.0 if step % 5 != 3 else 0.37  # the last batch is a part of one
        forward_backward(p, [size * share for size in sizes])
        gradients = [p.new(p.live[weight]) for weight in weights]
        p.free(*gradients)
    p.free(*states)


def adversarial_pair(p):
    """A generator and a discriminator take turns; the discriminator sees what both made."""
    for _ in range(30):
        p.new(p.between(100 * KIB, 20 * MIB))
    for step in range(30):
        p.step(step)
        batch = p.random.choice([16, 16, 16, 24])
        image = [batch * side * side * channels * 2 for side, channels in ((8, 512), (16, 512), (32, 256), (64, 128), (128, 64), (256, 3))]
        fake = [p.new(size) for size in image]
        for _ in range(2):
            forward_backward(p, list(reversed(image)))
        penalty = [p.new(size) for size in reversed(image)]
        forward_backward(p, image[-3:], temporary=2)
        p.free(*penalty)
        for number in reversed(fake):
            p.temporary(p.live[number])
            p.free(number)


def speech_of_any_length(p):
    """Convolutions over samples, then a transformer over frames: utterances of a second to half a minute, padded."""
    weights = [p.new(size * KIB) for _ in range(24) for size in (4 * 1024, 12 * 1024, 8 * 1024, 2)]
    for step in range(40):
        p.step(step)
        seconds = max(p.random.lognormvariate(1.8, 0.7) for _ in range(8))
        samples = int(min(30.0, seconds) * 16000)
        batch = 8
        sizes = [batch * samples // stride * 512 * 2 for stride in (5, 10, 20, 40, 80, 160, 320)]
        frames = samples // 320
        for _ in range(12):
            sizes += [batch * frames * 768 * 2, batch * 12 * frames * frames * 2, batch * frames * 3072 * 2]
        forward_backward(p, sizes)
        gradients = [p.new(p.live[weight]) for weight in weights]
        p.free(*gradients)


def search_of_models(p):
    """One small training after another, each of another size, each followed by empty_cache or not."""
    for trial in range(18):
        p.step(trial)
        width, depth = p.random.choice([256, 384, 512, 1024]), p.random.randrange(2, 14)
        batch = p.random.choice([32, 64, 128, 256])
        weights = [p.new(4 * size) for _ in range(depth) for size in (width * width, width, 4 * width * width, 4 * width)]
        states = []
        for _ in range(8):
            forward_backward(p, [4 * batch * 64 * width * factor for _ in range(depth) for factor in (1, 4, 1)])
            gradients = [p.new(p.live[weight]) for weight in weights]
            if not states:
                states = [p.new(p.live[weight]) for weight in weights for _ in range(2)]
            p.free(*gradients)
        p.free(*weights, *states)
        if trial % 3 == 2:
            p.empty_cache()


def recurrent_buckets(p):
    """Sentences in buckets of length: a few small blocks for each word, all saved."""
    for _ in range(12):
        p.new(p.between(2 * MIB, 60 * MIB))
    for step in range(40):
        p.step(step)
        words, batch = p.random.choice([10, 20, 30, 50, 80]), 64
        saved = []
        for _ in range(words):
            saved += [p.new(batch * 1024 * 4 * factor) for factor in (4, 1, 1)]
            p.temporary(batch * 1024 * 16)
        logits = p.new(batch * words * 10000 * 4)
        p.temporary(p.live[logits])
        p.free(logits)
        for number in reversed(saved):
            p.temporary(p.live[number])
            p.free(number)


def policy_gradient(p):
    """Rollouts are kept, small block by small block, then trained on in passes over parts of them."""
    for _ in range(20):
        p.new(p.between(64 * KIB, 12 * MIB))
    for iteration in range(12):
        p.step(iteration)
        kept = []
        for _ in range(256):
            kept += [p.new(size) for size in (64 * 84 * 84 * 4, 64 * 4, 64 * 4, 64 * 8, 64 * 6 * 4)]
            p.temporary(64 * 32 * 20 * 20 * 4)
            p.temporary(64 * 64 * 9 * 9 * 4)
        whole = [p.new(256 * size) for size in (64 * 84 * 84 * 4, 64 * 4, 64 * 4)]
        p.free(*kept)
        for _ in range(12):
            rows = 64 * 256 // 8
            batch = p.new(rows * 84 * 84 * 4)
            forward_backward(p, [rows * size for size in (32 * 400 * 4, 64 * 81 * 4, 64 * 49 * 4, 512 * 4)])
            p.free(batch)
        p.free(*whole)


def mixed_precision(p):
    """Half-precision copies of weights in each step, losses that overflow: every seventh step ends early."""
    weights = [p.new(4 * p.random.choice([590, 2360, 2360, 768, 3072 * 8]) * 1024) for _ in range(90)]
    states = []
    for step in range(28):
        p.step(step)
        casts = [p.new(p.live[weight] // 2) for weight in weights]
        rows = p.random.choice([1024, 2048, 2048, 3072])
        forward_backward(p, [rows * 768 * factor for _ in range(12) for factor in (2, 6, 2, 2, 8, 8)])
        gradients = [p.new(p.live[weight]) for weight in weights]
        p.free(*casts)
        if step % 7 != 6:
            if not states:
                states = [p.new(p.live[weight]) for weight in weights for _ in range(2)]
            lists = [p.new(p.live[weight]) for weight in weights]  # foreach: all of a step's temporaries at once
            p.free(*lists)
        p.free(*gradients)


SHAPES = [train_and_evaluate, adversarial_pair, speech_of_any_length, search_of_models, recurrent_buckets, policy_gradient,
          mixed_precision]
