"""What the comparisons with PyTorch share: an experiment's settings, its data in its order, and the same models."""
import math
import pathlib
import tomllib

import torch
from torch import nn
from torch.nn import functional as F

MASK = (1 << 64) - 1


def epoch_order(count, seed, shuffle=True):
    """The order of tenon::train::epoch_order: Fisher and Yates with SplitMix64."""
    order = list(range(count))
    if not shuffle:
        return order
    state = seed & MASK

    def draw():
        nonlocal state
        state = z = (state + 0x9E3779B97F4A7C15) & MASK
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
        return z ^ (z >> 31)

    for i in range(count - 1, 0, -1):
        j = draw() % (i + 1)
        order[i], order[j] = order[j], order[i]
    return order


def read_text(path):
    """Training and validation symbols and the vocabulary's size, as tenon::data::read_text by characters."""
    path = pathlib.Path(path)
    files = sorted(f for f in path.iterdir() if f.is_file() and not f.is_symlink()) if path.is_dir() else [path]
    train, validation = [], []
    for file in files:
        characters = list(file.read_bytes().decode())
        border = len(characters) - len(characters) // 10
        train += characters[:border]
        validation += characters[border:]
    numbers = {c: i for i, c in enumerate(sorted(set(train) | set(validation)))}
    as_tensor = lambda part: torch.tensor([numbers[c] for c in part])
    return as_tensor(train), as_tensor(validation), len(numbers)


def settings(file):
    return tomllib.loads(pathlib.Path(file).read_text())


class Block(nn.Module):
    def __init__(self, width, heads, layers, dropout, relu, causal=True, gelu="tanh", eps=1e-5):
        super().__init__()
        self.heads, self.dropout, self.relu, self.causal, self.gelu = heads, dropout, relu, causal, gelu
        self.norm1, self.norm2 = nn.LayerNorm(width, eps), nn.LayerNorm(width, eps)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.widen, self.narrow = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        for layer in (self.qkv, self.out, self.widen, self.narrow):
            residual = layer in (self.out, self.narrow)
            nn.init.normal_(layer.weight, 0, 0.02 / math.sqrt(2 * layers) if residual else 0.02)
            nn.init.zeros_(layer.bias)

    def drop(self, x):
        return F.dropout(x, self.dropout, self.training) if self.dropout else x

    def forward(self, x):
        n, t, c = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(n, t, 3, self.heads, c // self.heads).permute(2, 0, 3, 1, 4).unbind(0)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=self.causal,
                                           dropout_p=self.dropout if self.training else 0.0)
        x = x + self.drop(self.out(y.transpose(1, 2).reshape(n, t, c)))
        h = self.widen(self.norm2(x))
        h = F.relu(h) if self.relu else F.gelu(h, approximate=self.gelu)
        return x + self.drop(self.narrow(h))


class Gpt(nn.Module):
    """models/gpt.cpp: the same layers, the same distribution of first values."""

    def __init__(self, vocabulary, context, width, layers, heads, dropout=0.0, relu=False):
        super().__init__()
        self.symbols = nn.Embedding(vocabulary, width)
        self.positions = nn.Parameter(torch.empty(context, width))
        nn.init.normal_(self.symbols.weight, 0, 0.02)
        nn.init.normal_(self.positions, 0, 0.02)
        self.blocks = nn.ModuleList(Block(width, heads, layers, dropout, relu) for _ in range(layers))
        self.norm = nn.LayerNorm(width)
        self.dropout = dropout

    def forward(self, tokens):
        x = self.symbols(tokens) + self.positions[: tokens.shape[1]]
        x = F.dropout(x, self.dropout, self.training) if self.dropout else x
        for block in self.blocks:
            x = block(x)
        return F.linear(self.norm(x), self.symbols.weight)


def mlp(hidden=256, layers=2):
    widths = [784] + [hidden] * layers
    hidden_layers = [m for a, b in zip(widths, widths[1:]) for m in (nn.Linear(a, b), nn.ReLU())]
    return nn.Sequential(nn.Flatten(), *hidden_layers, nn.Linear(hidden, 10))


def lenet():
    return nn.Sequential(
        nn.Conv2d(1, 12, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(12, 24, 5), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(24 * 5 * 5, 128), nn.ReLU(), nn.Linear(128, 10))


class ResNetBlock(nn.Module):
    """3x3, 3x3; or, not `basic`, 1x1, 3x3, 1x1 with four times the width."""

    def __init__(self, inside, width, stride, basic):
        super().__init__()
        outside = width if basic else 4 * width
        sizes = [(inside, width, 3, stride), (width, outside, 3, 1)] if basic else [
            (inside, width, 1, 1), (width, width, 3, stride), (width, outside, 1, 1)]
        self.convs = nn.ModuleList(nn.Conv2d(i, o, k, s, k // 2, bias=False) for i, o, k, s in sizes)
        self.norms = nn.ModuleList(nn.BatchNorm2d(o) for _, o, _, _ in sizes)
        self.shortcut = None
        if inside != outside or stride != 1:
            self.shortcut = nn.Sequential(nn.Conv2d(inside, outside, 1, stride, bias=False), nn.BatchNorm2d(outside))

    def forward(self, x):
        y = x
        for i, (conv, norm) in enumerate(zip(self.convs, self.norms)):
            y = norm(conv(y))
            if i + 1 < len(self.convs):
                y = F.relu(y)
        return F.relu(y + (x if self.shortcut is None else self.shortcut(x)))


class ResNet(nn.Module):
    """models/resnet.cpp: the stem for small pictures."""

    def __init__(self, counts, basic):
        super().__init__()
        self.stem, self.norm = nn.Conv2d(1, 64, 3, 1, 1, bias=False), nn.BatchNorm2d(64)
        blocks, channels = [], 64
        for stage, count in enumerate(counts):
            for i in range(count):
                blocks.append(ResNetBlock(channels, 64 << stage, 2 if stage > 0 and i == 0 else 1, basic))
                channels = (64 << stage) * (1 if basic else 4)
        self.blocks, self.head = nn.Sequential(*blocks), nn.Linear(channels, 10)

    def forward(self, x):
        return self.head(self.blocks(F.relu(self.norm(self.stem(x)))).mean((2, 3)))


class Vit(nn.Module):
    """models/vit.cpp: patches of a picture behind a class token."""

    def __init__(self, side, patch, width, layers, heads):
        super().__init__()
        self.embedding = nn.Conv2d(1, width, patch, patch)
        self.class_token = nn.Parameter(torch.zeros(1, 1, width))
        self.positions = nn.Parameter(torch.empty((side // patch) ** 2 + 1, width))
        nn.init.normal_(self.positions, 0, 0.02)
        self.blocks = nn.Sequential(*(Block(width, heads, layers, 0.0, False, causal=False, gelu="none", eps=1e-6)
                                      for _ in range(layers)))
        self.norm, self.head = nn.LayerNorm(width, 1e-6), nn.Linear(width, 10)

    def forward(self, x):
        patches = self.embedding(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.class_token.expand(len(x), -1, -1), patches], 1) + self.positions
        return self.head(self.norm(self.blocks(x))[:, 0])


class LstmLm(nn.Module):
    """models/lstm_lm.cpp: the table of symbols is the output layer too."""

    def __init__(self, vocabulary, width, layers):
        super().__init__()
        self.symbols, self.bias = nn.Embedding(vocabulary, width), nn.Parameter(torch.zeros(vocabulary))
        nn.init.normal_(self.symbols.weight, 0, 0.1)
        self.layers = nn.LSTM(width, width, layers, batch_first=True)

    def forward(self, tokens):
        return F.linear(self.layers(self.symbols(tokens))[0], self.symbols.weight, self.bias)


class UnetLevel(nn.Sequential):
    def __init__(self, inside, outside):
        super().__init__(*(m for i in (inside, outside) for m in (
            nn.Conv2d(i, outside, 3, 1, 1, bias=False), nn.BatchNorm2d(outside), nn.ReLU())))


class Unet(nn.Module):
    """models/unet.cpp: a class for each pixel, the background among them."""

    def __init__(self, top, depth):
        super().__init__()
        widths = [top << i for i in range(depth + 1)]
        self.down = nn.ModuleList(UnetLevel(i, o) for i, o in zip([1] + widths, widths))
        self.widen = nn.ModuleList(nn.ConvTranspose2d(2 * w, w, 2, 2) for w in reversed(widths[:-1]))
        self.up = nn.ModuleList(UnetLevel(2 * w, w) for w in reversed(widths[:-1]))
        self.head = nn.Conv2d(top, 11, 1)

    def forward(self, x):
        features = []
        for level in self.down:
            x = level(F.max_pool2d(x, 2) if features else x)
            features.append(x)
        del features[-1]
        for widen, level in zip(self.widen, self.up):
            x = level(torch.cat([features.pop(), widen(x)], 1))
        return self.head(x)
