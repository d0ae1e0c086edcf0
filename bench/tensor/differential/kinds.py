"""What single arguments are like: the kinds that rows name. They know of one another through `Call`: an index lies within the
dimension that was drawn, a source has the sizes of the index before it.
"""
import random

FLOATING = ["f32", "f64", "f16", "bf16"]
INTEGER = ["i64", "i32", "i16", "i8", "u8"]
DTYPES = FLOATING + INTEGER + ["bool"]
LAYOUTS = "ccccctttsssoel"
# Half of the calls are drawn evenly; the others have more of what is rare: numbers and empty tensors, short dtypes (with
# gradients, too), unusual layouts, arguments that are views of others, guards.
LEANINGS = ("even",) * 5 + ("small", "short", "layouts", "aliases", "guards")
NUMBERS = ["Si0", "Si1", "Si2", "Si3", "Si-1", "Si-2", "Sr0.5", "Sr-1.5", "Sr2.0", "Sr0.0", "Sr1.0", "Sr0.25", "Sr3.7"]
WILD_NUMBERS = ["Srinf", "Srnan", "Sr-inf", "Si300", "Si-300", "Sb1", "Sb0", "Sr1e30", "Si2147483648"]


def sized(sizes):
    return "x".join(map(str, sizes)) if sizes else "-"


def listed(numbers):
    return "L" + ",".join(map(str, numbers))


class Call:
    """One call being drawn: its random numbers, and what its first tensor is like."""

    def __init__(self, seed, more=""):
        """`more` is a leaning that every call has, or "wild" or "edges"."""
        self.r = random.Random(seed)
        r = self.r
        self.leaning = r.choice(LEANINGS)
        self.wild = r.random() < 0.12 or more == "wild"  # now and then an argument that does not fit
        if more in LEANINGS:
            self.leaning = more
        self.order = r.choice((0, 0, 1, 1, 2))
        self.guard = r.choice(("-",) * (1 if self.leaning == "guards" else 10) + ("nograd", "inference"))
        self.dtype = r.choice(("f32",) * 4 + ("f64",) * 4 + tuple(DTYPES))
        if self.order:
            self.dtype = r.choice(("f64", "f64", "f32")) if r.random() < 0.9 else r.choice(FLOATING)
        if self.leaning == "short":
            self.dtype = r.choice(("f16", "bf16", "f16", "bf16", "i16", "i8", "u8", "bool")[:4 if self.order else 8])
        self.values = r.choice("nnnnnpuidew" if self.order == 0 else "nnnnnnnnppuuiiddwwe")
        if more == "edges":
            self.values = "e"
        self.sizes = self.random_sizes()
        self.dim = None
        self.index_sizes = []
        self.tensors = 0

    def random_sizes(self, least=0, most=4):
        r = self.r
        small, ranks = self.leaning == "small", (0, 1, 1, 2, 2, 2, 3, 3, 4)
        if small:
            ranks = (0, 0, 1, 2, 3)
        elif self.leaning == "layouts":
            ranks = (2, 3, 4, 4)
        rank = r.choice([k for k in ranks if least <= k <= most] or [least])
        return [r.choice((1, 2, 2, 3, 3, 4, 5)) if r.random() > (0.3 if small else 0.04) else 0 for _ in range(rank)]

    def oddly(self, chance=0.3):
        return self.wild and self.r.random() < chance

    def tensor(self, sizes, dtype=None, values=None, grad=None, layout=None):
        r = self.r
        dtype = dtype or (r.choice(DTYPES) if self.oddly() else self.dtype)
        values = values or self.values
        layout = layout or r.choice("cttsoelll" if self.leaning == "layouts" else LAYOUTS)
        word = f"T:{dtype}:{sized(sizes)}:{layout}:{values}:{r.randrange(1 << 30)}"
        if grad is None:
            grad = self.order > 0 and r.random() < 0.8
        if grad and dtype in FLOATING:
            word += ":g"
        self.tensors += 1
        return word

    def index(self, sizes, bound, dtype="i64"):
        kind = ("X" if self.r.random() < 0.2 else "x") + str(max(bound + (1 if self.oddly(0.2) else 0), 0))
        if self.oddly(0.2):
            dtype = self.r.choice(DTYPES)
        return self.tensor(sizes, dtype, kind, grad=False)

    def a_dim(self, rank=None):
        rank = len(self.sizes) if rank is None else rank
        if self.oddly(0.2):
            return self.r.choice((rank, -rank - 1, rank + 3))
        return self.r.randrange(-rank, rank) if rank else self.r.choice((0, -1))

    def along(self):
        """The dimension that the call is about, drawn once."""
        if self.dim is None:
            self.dim = self.a_dim()
        return self.dim

    def length(self):
        rank, dim = len(self.sizes), self.along()
        return self.sizes[dim] if -rank <= dim < rank else 1

    def other_dtype(self):
        r = self.r
        return self.dtype if r.random() < 0.7 else r.choice(DTYPES if self.order == 0 else FLOATING)

    def broadcast(self):
        r = self.r
        sizes = [1 if r.random() < 0.2 else s for s in self.sizes]
        if r.random() < 0.2:
            sizes = sizes[r.randrange(len(sizes) + 1):]
        elif r.random() < 0.1:
            sizes = [r.choice((1, 2))] + sizes
        if self.oddly(0.2) and sizes:
            sizes[r.randrange(len(sizes))] += 1
        return sizes

    def number(self):
        r = self.r
        return r.choice(WILD_NUMBERS) if self.oddly() else r.choice(NUMBERS)

    def chance(self, p):
        return self.r.random() < p


# --- kinds by name; each takes the call and gives a word ---

def x(c):
    return c.tensor(c.sizes)


def aliased(c):
    """An argument once more, itself or a view of it, more often under a guard than others."""
    at = c.r.randrange(c.tensors)
    c.tensors += 1
    if c.guard == "-" and c.chance(0.3):
        c.guard = c.r.choice(("nograd", "inference"))
    return c.r.choice((f"A{at}", f"V{at}:t", f"V{at}:s", f"V{at}:n", f"V{at}:e"))


def y(c):
    if c.tensors and c.chance(0.4 if c.leaning == "aliases" else 0.06):
        return aliased(c)
    return c.tensor(c.broadcast(), c.other_dtype())


def e(c):
    if c.tensors and c.chance(0.4 if c.leaning == "aliases" else 0.04):
        return aliased(c)
    sizes = list(c.sizes)
    if c.oddly(0.2) and sizes:
        sizes[0] += 1
    return c.tensor(sizes, c.dtype if c.chance(0.9) else c.other_dtype())


def m(c):
    return c.tensor(c.broadcast(), "bool" if not c.oddly(0.2) else c.r.choice(DTYPES), "n", grad=False)


def out(c):
    r = c.r
    sizes = r.choice(([0], list(c.sizes), [0], c.random_sizes()))
    return c.tensor(sizes, c.dtype if c.chance(0.7) else r.choice(DTYPES), "n", grad=c.oddly(0.1))


def outi(c):
    return c.tensor(c.r.choice(([0], list(c.sizes))), "i64" if not c.oddly() else c.r.choice(DTYPES), "n", grad=False)


def outb(c):
    return c.tensor(c.r.choice(([0], list(c.sizes))), c.r.choice(("bool", "bool", "u8", c.dtype)), "n", grad=False)


def fixed_rank(rank):
    def kind(c):
        c.sizes = c.random_sizes(rank, rank) if not c.oddly(0.15) else c.random_sizes()
        return c.tensor(c.sizes)
    return kind


def dims(c):
    rank = len(c.sizes)
    n = c.r.randrange(0, rank + 1) if rank else c.r.choice((0, 0, 1))
    chosen = c.r.sample(range(rank), n) if rank else [0] * n
    return listed([d - rank if c.chance(0.3) and rank else d for d in chosen] + ([7] if c.oddly(0.1) else []))


def reshaped(c):
    n = 1
    for s in c.sizes:
        n *= s
    r = c.r
    if n == 0:
        return listed(r.choice(([0], [0, 2], list(c.sizes))))
    sizes = []
    while n > 1 and len(sizes) < 3:
        f = r.choice([d for d in range(1, n + 1) if n % d == 0])
        sizes.append(f)
        n //= f
    sizes.append(n)
    if c.chance(0.3):
        sizes[r.randrange(len(sizes))] = -1
    if c.oddly(0.3):
        sizes.append(2)
    return listed(sizes)


def expand(c):
    sizes = [c.r.choice((2, 3)) if s == 1 and c.chance(0.7) else (-1 if c.chance(0.2) else s) for s in c.sizes]
    if c.chance(0.3):
        sizes = [c.r.choice((1, 2, 0))] + sizes
    return listed(sizes)


def permutation(c):
    order = list(range(len(c.sizes)))
    c.r.shuffle(order)
    return listed([d - len(order) if c.chance(0.3) else d for d in order])


def v(c):
    n = c.r.choice((0, 1, 2, 3, 4))
    c.index_sizes = [n] if not c.chance(0.05) else []
    return c.index(c.index_sizes, c.length(), c.r.choice(("i64", "i64", "i32")))


def i(c):
    rank, dim = len(c.sizes), c.along()
    at = dim % rank if rank else 0
    c.index_sizes = [c.r.choice((1, 2, 3)) if d == at else c.r.randrange(0 if s == 0 or c.chance(0.1) else 1, s + 1)
                     for d, s in enumerate(c.sizes)]
    if c.chance(0.03):
        c.index_sizes = [0] * rank if rank else [0]
    kind = "x" + str(c.length() + (1 if c.oddly(0.1) else 0))
    return c.tensor(c.index_sizes, "i64" if not c.oddly(0.2) else c.r.choice(INTEGER), kind, grad=False)


def source(c):
    sizes = [s + (1 if c.chance(0.1) else 0) for s in c.index_sizes]
    return c.tensor(sizes, c.dtype if not c.oddly(0.2) else c.other_dtype())


def rows(c):
    sizes = list(c.sizes)
    rank = len(sizes)
    if rank and -rank <= c.along() < rank:
        sizes[c.along()] = c.index_sizes[0] if c.index_sizes else 1
    return c.tensor(sizes, c.dtype if not c.oddly(0.2) else c.other_dtype())


def flatindex(c):
    n = 1
    for s in c.sizes:
        n *= s
    c.index_sizes = c.random_sizes(0, 2)
    return c.index(c.index_sizes, n)


def indices(c):
    words, length = [], c.r.choice((0, 1, 2, 3))
    c.index_sizes = [length]
    for size in c.sizes[:c.r.randrange(0, 3)]:
        kind = c.r.random()
        if kind < 0.2:
            words.append("N")
        elif kind < 0.35:
            words.append(c.tensor([size], "bool", "n", grad=False))
        else:
            words.append(c.index(c.r.choice(([length], [length], [1], [])), size))
    if c.chance(0.05):
        words = [c.tensor(c.sizes, "bool", "n", grad=False)]
    return "[" + ";".join(words) + "]"


def valuefor(c):
    return c.tensor(c.r.choice(([], [], [1], c.index_sizes)), c.dtype if not c.oddly(0.2) else c.other_dtype())


def tensor_list(make):
    def kind(c):
        return "[" + ";".join(make(c)) + "]"
    return kind


def joined(c):
    rank = len(c.sizes)
    dim = c.dim = c.a_dim() if c.dim is None else c.dim
    words = []
    for _ in range(c.r.choice((1, 2, 2, 3)) if not c.oddly(0.1) else 0):
        sizes = list(c.sizes)
        if rank and -rank <= dim < rank and c.chance(0.6):
            sizes[dim] = c.r.randrange(0, 4)
        if c.chance(0.05):
            sizes = [0]
        words.append(c.tensor(sizes, c.dtype if c.chance(0.85) else c.other_dtype()))
    return words


def same(c):
    return [c.tensor(c.sizes, c.dtype if c.chance(0.85) else c.other_dtype()) for _ in range(c.r.choice((1, 2, 3)))]


def like(c):
    return [c.tensor(c.broadcast(), c.other_dtype()) for _ in range(c.r.choice((1, 2, 3)))]


def vectors(c):
    return [c.tensor([c.r.choice((0, 1, 2, 3))] if not c.chance(0.1) else [], c.dtype) for _ in range(c.r.choice((1, 2, 3)))]


def vector(c):
    return c.tensor([c.r.choice((0, 1, 2, 3, 4))])


def blocks(c):
    """Matrices, now and then vectors and numbers."""
    return [c.tensor(c.random_sizes(0, 3 if c.oddly(0.1) else 2), c.dtype if c.chance(0.85) else c.other_dtype())
            for _ in range(c.r.choice((0, 1, 2, 3)))]


def parts(c):
    left, sizes = c.length(), []
    while left > 0:
        n = c.r.randrange(0, left + 1)
        sizes.append(n)
        left -= n
    if c.oddly(0.3):
        sizes.append(1)
    return listed(sizes)


def q(c):
    return c.tensor(c.r.choice(([], [1], [3])), c.dtype, "u", grad=False)


def sequences(c):
    """Tensors that differ in their first size, as a batch of sequences does."""
    return [c.tensor([c.r.choice((1, 2, 3))] + c.sizes[1:]) for _ in range(c.r.choice((1, 2, 3)))]


PLAIN = {
    "x": x, "y": y, "e": e, "m": m, "out": out, "outi": outi, "outb": outb, "dims": dims, "sizes": reshaped,
    "expand": expand, "permutation": permutation, "v": v, "i": i, "source": source, "rows": rows, "flatindex": flatindex,
    "indices": indices, "valuefor": valuefor, "joined": tensor_list(joined), "same": tensor_list(same), "blocks": tensor_list(blocks),
    "like": tensor_list(like), "joined0": tensor_list(sequences), "vectors": tensor_list(vectors), "vector": vector, "parts": parts, "q": q,
    "x1": lambda c: c.tensor(c.r.choice(([], [1], [1, 1], [2]))), "x3": fixed_rank(3),
    "x4": fixed_rank(4), "x5": fixed_rank(5), "matrix": fixed_rank(2),
    "plain": lambda c: c.tensor(c.sizes, layout="c"),
    "unit": lambda c: c.tensor(c.sizes, values="u"),
    "n0": lambda c: c.tensor([] if not c.oddly(0.2) else [1], c.other_dtype()),
    "s": lambda c: c.number(), "b": lambda c: c.r.choice(("B0", "B1")),
    "step": lambda c: c.r.choice([*NUMBERS, "Si300", "Sr-inf", "Srnan", "Sb1"]),
    "dim": lambda c: f"I{c.along() if c.dim is None else c.a_dim()}", "dim0": lambda c: f"I{c.along()}",
    "last": lambda c: f"I{c.sizes[-1] if c.sizes and c.chance(0.9) else c.r.randrange(1, 5)}",
    "channels": lambda c: f"I{c.sizes[1] if len(c.sizes) > 1 and c.chance(0.9) else c.r.randrange(1, 5)}",
    "dtype": lambda c: "D" + c.r.choice(DTYPES),
    "sizes2": lambda c: listed(c.r.choice(([], [0], [2], [3, 2], [1, 2], [2, 1, 2]))),
    "sizes1": lambda c: listed(c.sizes[c.r.randrange(len(c.sizes) + 1):] or [2]),
    "strides2": lambda c: listed(c.r.choice(([], [1], [2], [1, 1], [2, 1], [0, 1], [1, 2, 1]))),
    "factor": lambda c: listed(c.r.choice(([c.length()], [1, -1], [2, -1], [-1]))),
    "cuts": lambda c: listed(sorted(c.r.randrange(-2, 5) for _ in range(c.r.randrange(0, 3)))),
    "shifts": lambda c: listed([c.r.randrange(-3, 4) for _ in range(c.r.randrange(0, 3))]),
    "repeats": lambda c: listed([c.r.choice((0, 1, 2, 3)) for _ in range(len(c.sizes) + c.r.choice((0, 0, 1, -1)))]
                                if c.sizes else [2]),
    "repeatvector": lambda c: c.tensor(c.r.choice(([c.length()], [1])), "i64", "x3", grad=False),
    "pad": lambda c: listed([c.r.choice((0, 1, 1, 2, -1)) for _ in range(2 * c.r.randrange(0, max(len(c.sizes), 1) + 1))]),
    "prelu": lambda c: c.tensor(c.r.choice(([], [1], [c.sizes[1] if len(c.sizes) > 1 else 1]))),
    "count": lambda c: _counted(c), "likecount": lambda c: c.tensor(c.index_sizes, c.r.choice(("f32", "f64", "i64"))),
    "index": lambda c: c.index(c.random_sizes(0, 2), c.sizes[0] if c.sizes else 3),
    "index0": lambda c: c.index(c.random_sizes(0, 2), 5),
    "vector3": lambda c: c.tensor([3], c.dtype), "vector9": lambda c: c.tensor([9], c.dtype),
    "likeindex": lambda c: c.tensor(c.index_sizes, c.dtype),
    "increasing": lambda c: c.tensor([c.r.choice((0, 1, 3, 4))], c.other_dtype(), "a", grad=False, layout="c"),
}


def _counted(c):
    c.index_sizes = [c.r.choice((0, 1, 3, 6))]
    return c.tensor(c.index_sizes, c.r.choice(INTEGER), "x6", grad=False)
