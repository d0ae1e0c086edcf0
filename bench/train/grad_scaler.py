#!/usr/bin/env python3
"""Records what torch.amp.GradScaler does on a scripted sequence of overflows: tests/optim/grad_scaler_states.inl.

  python bench/train/grad_scaler.py > tests/optim/grad_scaler_states.inl

Two optimisers share a scaler. Each letter of the script is an iteration: '.' all gradients are finite, 'a' (b) one of the
first (second) optimiser's is infinite, 'n' one of the first's is not a number, 'c' both overflow, 'u' the first's
gradients are unscaled before the step, 's' the scale is set to 24 by update(). The scale starts at 2^18 and grows after three
iterations without an overflow.
"""
import torch

SCRIPT = "...a.b.......n..u...c.us....a....bbbbb......"
OPTIONS = dict(init_scale=2.0 ** 18, growth_factor=3.0, backoff_factor=0.3, growth_interval=3)


def course(script, weight=1.0, **options):
    scaler = torch.amp.GradScaler("cpu", **options)
    first, second = (torch.tensor([1.0, -2.0], requires_grad=True) for _ in range(2))
    optimizers = [torch.optim.SGD([first], lr=0.125), torch.optim.SGD([second], lr=0.125)]
    for what in script:
        loss = scaler.scale(((first * first).sum() + (second * second).sum()) * weight)
        for optimizer in optimizers:
            optimizer.zero_grad()
        loss.backward()
        if what in "ac":
            first.grad[1] = float("inf")
        if what == "n":
            first.grad[0] = float("nan")
        if what in "bc":
            second.grad[0] = float("-inf")
        if what == "u":
            scaler.unscale_(optimizers[0])
        for optimizer in optimizers:
            scaler.step(optimizer)
        scaler.update(24.0 if what == "s" else None)
        state = scaler.state_dict()
        yield what, state["scale"], state["_growth_tracker"], first.detach()[1].item(), second.detach()[0].item()


print(f"// Written by bench/train/grad_scaler.py from torch {torch.__version__.split('+')[0]}: what an iteration was, then the scale")
print("// and the growth tracker after it, and an element of each optimiser's parameter.")
print("// GRAD_SCALER_STEP(iteration, scale, growth tracker, first parameter, second parameter)")
for what, scale, tracker, first, second in course(SCRIPT, **OPTIONS):
    print(f"GRAD_SCALER_STEP('{what}', {scale!r}, {tracker}, {first!r}, {second!r})")
print("// The same of a scale that may not grow to infinity: GRAD_SCALER_AT_THE_TOP(scale, growth tracker)")
for _, scale, tracker, _, _ in course("..", weight=1e-6, init_scale=3e38, growth_interval=1):
    print(f"GRAD_SCALER_AT_THE_TOP({scale!r}, {tracker})")
print("#undef GRAD_SCALER_STEP")
print("#undef GRAD_SCALER_AT_THE_TOP")
