"""What a program asks for, written down event by event."""
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
