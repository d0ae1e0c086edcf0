#!/usr/bin/env python3
"""Trains the gpt of an experiment file in PyTorch on the same windows of text in the same order, and compares the
validation loss with that of a `tenon run` of the file.

  tenon run examples/experiments/gpt_text.toml --out tenon-out/gpt_text
  python bench/train/gpt_text_pytorch.py examples/experiments/gpt_text.toml tenon-out/gpt_text/result.json [KEY=VALUE …]

First values are drawn from the same distributions, by another generator. Exit code 1 when the two losses differ by more
than 2 %. KEY=VALUE are the whole numbers that were given to `tenon run`, such as train.max_steps=20.
"""
import json
import math
import sys
import time

import torch
from torch.nn import functional as F

from common import Gpt, epoch_order, read_text, settings


def learning_rate(train, step, steps):
    warmup = train.get("schedule_warmup", 0)
    if step < warmup:
        return train["lr"] * (step + 1) / warmup
    done = min((step - warmup) / max(steps - warmup, 1), 1.0)
    course = train.get("schedule", "constant")
    if course == "cosine":
        return train["lr"] * 0.5 * (1 + math.cos(math.pi * done))
    return train["lr"] * (1 - done) if course == "linear" else train["lr"]


def main():
    file, result = sys.argv[1], json.load(open(sys.argv[2]))
    config = settings(file)
    for word in sys.argv[3:]:
        (section, key), value = word.split("=")[0].split("."), word.split("=")[1]
        config[section][key] = int(value)
    model_options, data, train = config["model"], config["data"], config["train"]
    torch.set_num_threads(train.get("threads", 2))
    seed, batch_size, context = train.get("seed", 47), train["batch_size"], model_options["context"]
    torch.manual_seed(seed)
    training, validation, vocabulary = read_text(data.get("path", "/usr/share/common-licenses"))
    model = Gpt(vocabulary, context, model_options["hidden"], model_options["layers"], model_options["heads"],
                model_options.get("dropout", 0.0), model_options.get("activation") == "relu")
    parameters = sum(p.numel() for p in model.parameters())
    assert parameters == result["result"]["parameters"], (parameters, result["result"]["parameters"])
    optimizer = torch.optim.AdamW(model.parameters(), lr=train["lr"], weight_decay=train.get("weight_decay", 0.0))

    def window(symbols, index):
        return symbols[index * context:index * context + context], symbols[index * context + 1:index * context + context + 1]

    def batch(symbols, indices):
        pairs = [window(symbols, i) for i in indices]
        return torch.stack([a for a, _ in pairs]), torch.stack([b for _, b in pairs])

    def loss_of(x, y):
        return F.cross_entropy(model(x).flatten(0, 1), y.flatten())

    windows = (len(training) - 1) // context
    steps_per_epoch = windows // batch_size
    steps = steps_per_epoch * train.get("epochs", 1)
    steps = min(steps, train["max_steps"]) if train.get("max_steps", 0) else steps
    start, step = time.time(), 0
    while step < steps:
        order = epoch_order(windows, seed * 1_000_003 + step // steps_per_epoch + 1)
        for i in range(min(steps_per_epoch, steps - step)):
            loss = loss_of(*batch(training, order[i * batch_size:(i + 1) * batch_size]))
            loss.backward()
            if train.get("clip_grad_norm", 0) > 0:
                torch.nn.utils.clip_grad_norm_(model.parameters(), train["clip_grad_norm"])
            optimizer.param_groups[0]["lr"] = learning_rate(train, step, steps)
            optimizer.step()
            optimizer.zero_grad()
            step += 1
        print(f"step {step}: loss {loss.item():.4f}, {time.time() - start:.0f} s", file=sys.stderr)
    model.eval()
    with torch.no_grad():
        count = (len(validation) - 1) // context
        count = min(count, data["test_limit"]) if data.get("test_limit", 0) else count
        at_once = train.get("test_batch_size", 1000)
        total = 0.0
        for first in range(0, count, at_once):
            indices = range(first, min(first + at_once, count))
            total += loss_of(*batch(validation, indices)).item() * len(indices)
    theirs, ours = total / count, result["result"]["epochs"][-1]["test_loss"]
    print(json.dumps({"parameters": parameters, "steps": steps, "tenon": ours, "pytorch": theirs,
                      "ratio": ours / theirs, "torch": torch.__version__}))
    return 0 if abs(ours / theirs - 1) <= 0.02 else 1


if __name__ == "__main__":
    sys.exit(main())
