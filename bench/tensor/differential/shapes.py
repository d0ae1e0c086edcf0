"""Arguments whose sizes belong together: products, convolutions, windows, targets."""
from kinds import listed


def size(c):
    return c.r.choice((1, 2, 3, 4)) if not c.chance(0.05) else 0


def off(c, n):
    """n, or now and then another size, which does not fit."""
    return n + 1 if c.oddly(0.2) else n


def floating(c):
    """Most of these have no meaning for integers: few of them are tried."""
    if c.dtype in ("i64", "i32", "i16", "i8", "u8", "bool") and c.chance(0.8):
        c.dtype = c.r.choice(("f32", "f64"))
    if c.values in "ed":
        c.values = "n"


def matmul(c):
    k, lead = size(c), [size(c) for _ in range(c.r.choice((0, 0, 1, 2)))]
    a = c.r.choice(([k], [size(c), k], lead + [size(c), k]))
    b = c.r.choice(([off(c, k)], [off(c, k), size(c)], lead[-1:] + [k, size(c)], [1] * len(lead) + [k, size(c)]))
    return [c.tensor(a), c.tensor(b)]


def mm(c):
    n, k, m = size(c), size(c), size(c)
    return [c.tensor([n, k]), c.tensor([off(c, k), m])]


def bmm(c):
    b, n, k, m = (size(c) for _ in range(4))
    return [c.tensor([b, n, k]), c.tensor([off(c, b), k, m])]


def mv(c):
    n, k = size(c), size(c)
    return [c.tensor([n, k]), c.tensor([off(c, k)])]


def dot(c):
    n = size(c)
    return [c.tensor([n]), c.tensor([off(c, n)])]


def inner(c):
    k = size(c)
    return [c.tensor(c.r.choice(([k], [2, k], []))), c.tensor(c.r.choice(([off(c, k)], [3, k], [])))]


def added(c, full, a, b):
    sizes = [1 if c.chance(0.2) else s for s in full]
    if c.chance(0.1):
        sizes = sizes[1:]
    return [c.tensor(sizes), c.tensor(a), c.tensor(b)]


def addmm(c):
    n, k, m = size(c), size(c), size(c)
    return added(c, [n, m], [n, k], [off(c, k), m])


def baddbmm(c):
    b, n, k, m = (size(c) for _ in range(4))
    return added(c, [b, n, m], [b, n, k], [b, off(c, k), m])


def addbmm(c):
    b, n, k, m = (size(c) for _ in range(4))
    return added(c, [n, m], [b, n, k], [b, off(c, k), m])


def addmv(c):
    n, k = size(c), size(c)
    return added(c, [n], [n, k], [off(c, k)])


def addr(c):
    n, m = size(c), size(c)
    return added(c, [n, m], [n], [m])


def linear(c):
    k, n = size(c), size(c)
    x = c.r.choice(([k], [size(c), k], [2, size(c), k]))
    return [c.tensor(x), c.tensor([n, off(c, k)]), "N" if c.chance(0.4) else c.tensor([n])]


def bilinear(c):
    a, b, n = size(c), size(c), size(c)
    lead = c.r.choice(([], [2], [2, 3]))
    return [c.tensor(lead + [a]), c.tensor(lead + [off(c, b)]), c.tensor([n, a, b]), "N" if c.chance(0.4) else c.tensor([n])]


def chain(c):
    sizes = [size(c) for _ in range(c.r.choice((3, 4, 5)))]
    words = [c.tensor([a, b]) for a, b in zip(sizes, sizes[1:])]
    return ["[" + ";".join(words) + "]"]


def power(c):
    n = size(c)
    c.values = "i"
    return [c.tensor(c.r.choice(([n, n], [2, n, n], [n, off(c, n)])))]


def tensordot(c):
    k, m = size(c), size(c)
    a, b = [size(c), k, m], [k, m, size(c)]
    return [c.tensor(a), c.tensor(b)] + c.r.choice(([listed([1, 2]), listed([0, 1])], [listed([1]), listed([0])],
                                                     [listed([]), listed([])], [listed([-2]), listed([-3])]))


def einsum(c):
    i, j, k, b = (size(c) for _ in range(4))
    forms = {"ij,jk->ik": ([i, j], [j, k]), "bij,bjk->bik": ([b, i, j], [b, j, k]), "ii->i": ([i, i],), "ii": ([i, i],),
             "ij->ji": ([i, j],), "i,j->ij": ([i], [j]), "ij->": ([i, j],), "...ij,...jk": ([b, i, j], [j, k]),
             "bij,bik->jk": ([b, i, j], [b, i, k]), "i,i": ([i], [i]), "...ii->...i": ([b, i, i],), "ij,ij->j": ([i, j], [i, j]),
             "ij,kj,k->i": ([i, j], [k, j], [k])}
    form = c.r.choice(sorted(forms))
    return ["Q" + form, "[" + ";".join(c.tensor(list(s)) for s in forms[form]) + "]"]


def cross(c):
    rank = c.r.choice((1, 2, 3))
    sizes = [c.r.choice((1, 2, 3)) for _ in range(rank)]
    at = c.r.randrange(rank)
    sizes[at] = off(c, 3)
    c.sizes, c.dim = sizes, (at if c.chance(0.6) else at - rank)
    return [c.tensor(sizes), c.tensor([1 if c.chance(0.1) and d != at else s for d, s in enumerate(sizes)])]


def cdist(c):
    floating(c)
    k = size(c)
    lead = c.r.choice(([], [], [2], [1]))
    return [c.tensor(lead + [size(c), k]), c.tensor(c.r.choice((lead, [])) + [size(c), off(c, k)])]


# --- views that are written ---

def slice_scatter(c):
    c.sizes = c.random_sizes(1)
    rank = len(c.sizes)
    dim = c.r.randrange(rank)
    n = c.sizes[dim]
    first, last, step = c.r.choice((None, 0, 1, -2)), c.r.choice((None, n, 2, -1)), c.r.choice((1, 1, 2, 3))
    sizes = list(c.sizes)
    sizes[dim] = off(c, len(range(n)[first:last:step]))
    word = lambda at: "N" if at is None else f"I{at}"
    return [c.tensor(c.sizes), c.tensor(sizes, c.dtype if c.chance(0.85) else c.other_dtype()),
            f"I{dim - rank if c.chance(0.3) else dim}", word(first), word(last), f"I{step}"]


def select_scatter(c):
    c.sizes = c.random_sizes(1)
    dim = c.r.randrange(len(c.sizes))
    n = c.sizes[dim]
    source = c.sizes[:dim] + c.sizes[dim + 1:]
    at = c.r.randrange(-n, n) if n and not c.oddly(0.2) else n
    return [c.tensor(c.sizes), c.tensor([off(c, s) for s in source], c.dtype if c.chance(0.85) else c.other_dtype()),
            f"I{dim}", f"I{at}"]


def diagonal_scatter(c):
    c.sizes = c.random_sizes(2)
    a, b = c.r.sample(range(len(c.sizes)), 2)
    offset = c.r.randrange(-2, 3)
    n = max(min(c.sizes[a], c.sizes[b] - offset) if offset >= 0 else min(c.sizes[a] + offset, c.sizes[b]), 0)
    source = [s for d, s in enumerate(c.sizes) if d not in (a, b)] + [off(c, n)]
    return [c.tensor(c.sizes), c.tensor(source, c.dtype if c.chance(0.85) else c.other_dtype()), f"I{offset}", f"I{a}", f"I{b}"]


def cov(c):
    floating(c)
    c.sizes = c.random_sizes(0, 3 if c.oddly(0.1) else 2)
    n = (1 if not c.sizes else c.sizes[-1])
    frequency = "N" if c.chance(0.6) else c.tensor([off(c, n)], c.r.choice(("i64", "i64", "i32")), "x3", grad=False)
    weights = "N" if c.chance(0.6) else c.tensor([off(c, n)], c.dtype, "p")
    return [c.tensor(c.sizes), f"I{c.r.choice((1, 1, 0, 2))}", frequency, weights]


# --- targets ---

def classes(c):
    floating(c)
    n, k = size(c), 3
    spatial = c.r.choice(([], [], [2], [2, 2]))
    if c.chance(0.15):
        return [c.tensor([k]), c.index([], k)]
    return [c.tensor([n, k] + spatial), c.index([n] + spatial, k)]


def labels(c):
    floating(c)
    n = size(c)
    return [c.tensor([n, 3]), c.index([n, off(c, 3)], 3)]


def cosine_embedding(c):
    floating(c)
    n, k = size(c), size(c)
    target = c.tensor([n], "f32" if c.chance(0.3) else c.dtype, "i", grad=False)
    return [c.tensor([n, k]), c.tensor([n, k]), target]


def ctc(c):
    c.dtype, c.values = c.r.choice(("f32", "f64")), "n"
    time, batch, kinds, length = c.r.choice((3, 4, 5)), c.r.choice((1, 2)), 4, c.r.choice((1, 2))
    probabilities = c.tensor([time, batch, kinds])
    target = c.tensor([batch, length], "i64", "x3", grad=False, layout="c")
    return [probabilities, target, listed([time] * batch), listed([c.r.choice((length, 1)) for _ in range(batch)])]


# --- norms ---

def layer_norm(c):
    floating(c)
    lead, shape = c.r.choice(([], [2], [2, 3])), c.r.choice(([3], [2, 2], [4]))
    w = "N" if c.chance(0.4) else c.tensor([off(c, s) for s in shape])
    b = "N" if c.chance(0.4) else c.tensor(shape)
    return [c.tensor(lead + shape), listed(shape), w, b]


def rms_norm(c):
    x, shape, w, _ = layer_norm(c)
    return [x, shape, w]


def group_norm(c):
    floating(c)
    groups = c.r.choice((1, 2, 3))
    channels = off(c, groups * c.r.choice((1, 2)))
    affine = lambda: "N" if c.chance(0.4) else c.tensor([channels])
    return [c.tensor([size(c), channels] + c.r.choice(([], [3], [2, 2]))), f"I{groups}", affine(), affine()]


def batch_norm(c):
    floating(c)
    channels = c.r.choice((1, 2, 3))
    affine = lambda: "N" if c.chance(0.4) else c.tensor([channels])
    running = c.chance(0.6)
    mean = c.tensor([channels], values="n", grad=False) if running else "N"
    var = c.tensor([channels], values="p", grad=False) if running else "N"
    return [c.tensor([size(c), channels] + c.r.choice(([], [3], [2, 2], [4]))), affine(), affine(), mean, var]


# --- windows ---

def each(c, dims, numbers):
    """One number for all dimensions, or one for each."""
    return listed([c.r.choice(numbers)] if c.chance(0.4) else [c.r.choice(numbers) for _ in range(dims)])


def conv_sizes(c, dims, transposed):
    floating(c)
    groups = c.r.choice((1, 1, 2))
    per, out = c.r.choice((1, 2)), c.r.choice((1, 2))
    kernel = [c.r.choice((1, 2, 3)) for _ in range(dims)]
    spatial = [c.r.choice((3, 4, 5)) for _ in range(dims)]
    lead = [size(c)] if c.chance(0.85) else []
    x = c.tensor(lead + [off(c, groups * per)] + spatial)
    w = c.tensor(([groups * per, out] if transposed else [groups * out, per]) + kernel)
    b = "N" if c.chance(0.5) else c.tensor([groups * out])
    return x, w, b, f"I{groups}"


def conv(dims):
    def kind(c):
        x, w, b, groups = conv_sizes(c, dims, False)
        return [x, w, b, each(c, dims, (1, 1, 2)), each(c, dims, (0, 1, 2)), each(c, dims, (1, 1, 2)), groups]
    return kind


def conv_same(dims):
    def kind(c):
        x, w, b, groups = conv_sizes(c, dims, False)
        return [x, w, b, each(c, dims, (1, 1, 1, 2)), c.r.choice(("Qsame", "Qvalid")), each(c, dims, (1, 1, 2)), groups]
    return kind


def conv_transpose(dims):
    def kind(c):
        x, w, b, groups = conv_sizes(c, dims, True)
        return [x, w, b, each(c, dims, (1, 1, 2)), each(c, dims, (0, 0, 1)), each(c, dims, (0, 0, 0, 1)), groups,
                each(c, dims, (1, 1, 2))]
    return kind


def pooled(c, dims):
    floating(c)
    lead = [size(c), size(c)] if c.chance(0.8) else [size(c)]
    return c.tensor(lead + [c.r.choice((2, 3, 4, 5)) for _ in range(dims)])


def max_pool(dims):
    def kind(c):
        stride = listed([]) if c.chance(0.3) else each(c, dims, (1, 2, 3))
        return [pooled(c, dims), each(c, dims, (1, 2, 2, 3)), stride, each(c, dims, (0, 0, 1)), each(c, dims, (1, 1, 1, 2))]
    return kind


def avg_pool(dims):
    def kind(c):
        stride = listed([]) if c.chance(0.3) else each(c, dims, (1, 2, 3))
        return [pooled(c, dims), each(c, dims, (1, 2, 2, 3)), stride, each(c, dims, (0, 0, 1))]
    return kind


def adaptive(dims):
    def kind(c):
        return [pooled(c, dims), listed([c.r.choice((1, 2, 3, 4, 6)) for _ in range(dims)])]
    return kind


def lp_pool2(c):
    return [pooled(c, 2), c.r.choice(("R1.0", "R2.0", "R3.0")), listed([c.r.choice((1, 2)), c.r.choice((1, 2))])]


def im2col(c):
    return [pooled(c, 2)] + [listed([c.r.choice(n), c.r.choice(n)]) for n in ((1, 2), (1, 2), (0, 1), (1, 2))]


def col2im(c):
    floating(c)
    h, w, k = c.r.choice((2, 3, 4)), c.r.choice((2, 3, 4)), c.r.choice((1, 2))
    x = c.tensor([size(c), off(c, 2 * k * k), (h - k + 1) * (w - k + 1)])
    return [x, listed([h, w]), listed([k, k]), listed([1, 1]), listed([0, 0]), listed([1, 1])]


def grid(c):
    floating(c)
    n, channels = size(c), size(c)
    dims = c.r.choice((2, 2, 3))
    x = c.tensor([n, channels] + [c.r.choice((1, 2, 3, 4)) for _ in range(dims)])
    return [x, c.tensor([off(c, n)] + [c.r.choice((1, 2, 3)) for _ in range(dims)] + [dims])]


def affine(c):
    floating(c)
    n = c.r.choice((1, 2))
    if c.chance(0.7):
        return [c.tensor([n, 2, 3]), listed([n, 2, c.r.choice((1, 2, 3)), c.r.choice((1, 2, 4))])]
    return [c.tensor([n, 3, 4]), listed([n, 1, 2, c.r.choice((1, 2)), 3])]


def interpolate(c):
    floating(c)
    mode, dims = c.r.choice((("nearest", 1), ("nearest", 2), ("nearest", 3), ("linear", 1), ("bilinear", 2), ("bicubic", 2),
                             ("trilinear", 3), ("area", 1), ("area", 2), ("nearest-exact", 2)))
    x = c.tensor([size(c), size(c)] + [c.r.choice((1, 2, 3, 4, 5)) for _ in range(dims)])
    return [x, listed([c.r.choice((1, 2, 3, 4, 6, 7)) for _ in range(dims)]), "Q" + mode]


def attention(c):
    floating(c)
    lead = c.r.choice(([], [2], [2, 2]))
    n, m, d = c.r.choice((1, 2, 3)), c.r.choice((1, 2, 4)), c.r.choice((1, 2, 4))
    mask = "N"
    if c.chance(0.3):
        mask = c.tensor([n, m], c.r.choice(("bool", c.dtype)), "n")
    return [c.tensor(lead + [n, d]), c.tensor(lead + [m, off(c, d)]), c.tensor(lead + [m, c.r.choice((d, d, 3))]), mask]


def cell(c, gates):
    """Of a recurrent cell: input, state, both weights, both biases."""
    floating(c)
    n, width, hidden = size(c), size(c), size(c)
    bias = c.chance(0.6)
    return [c.tensor([n, width]), c.tensor([off(c, n), hidden]), c.tensor([gates * hidden, off(c, width)]),
            c.tensor([gates * hidden, hidden])] + [c.tensor([gates * hidden]) if bias else "N" for _ in range(2)]


def bag(c):
    floating(c)
    rows, width, n = 4, size(c), c.r.choice((1, 3, 5))
    offsets = c.tensor([c.r.choice((1, 2))], "i64", "x1", grad=False, layout="c")
    return [c.tensor([rows, width]), c.tensor([n], "i64", "x4", grad=False, layout="c"), offsets]


def ordered(c):
    n = c.r.choice((0, 1, 3, 4))
    batch = c.r.choice(([], [], [2]))
    dtype = c.r.choice(("f32", "f64", "i64", "i32", c.dtype))
    sequence = c.tensor(batch + [n], dtype, "a" if c.chance(0.8) else "x1", grad=False, layout="c")
    values = c.tensor(c.r.choice((batch + [2], [3] if not batch else batch + [3], [] if not batch else batch + [1])),
                      c.other_dtype() if c.chance(0.3) else dtype, grad=False)
    return [sequence, values]


SHAPES = {name: globals()[name] for name in (
    "matmul mm bmm mv dot inner addmm baddbmm addbmm addmv addr linear bilinear chain power tensordot einsum cross cdist classes "
    "labels cosine_embedding ctc layer_norm rms_norm group_norm batch_norm lp_pool2 im2col col2im grid affine interpolate "
    "attention bag cell slice_scatter select_scatter diagonal_scatter cov").split()}
SHAPES["sorted"] = ordered
for _dims in (1, 2, 3):
    SHAPES |= {f"conv{_dims}": conv(_dims), f"conv{_dims}same": conv_same(_dims), f"conv_transpose{_dims}": conv_transpose(_dims),
               f"max_pool{_dims}": max_pool(_dims), f"avg_pool{_dims}": avg_pool(_dims), f"adaptive{_dims}": adaptive(_dims)}
