#!/usr/bin/env python3
"""What each part of an allocator buys: mortise with its parts left out one at a time, on every history.

usage: bench/replay/ablation.py build/release/bin/tenon [--capacity SIZE] [--out DIR] TRACE...

Writes the tables of bench/results/mortise.md to standard output, and the pictures mortise_parts.svg and
mortise_histories.svg into DIR (bench/results). Histories whose peak is below 16 MiB are left out. All figures are exact.
"""
import argparse
import os
import subprocess
import sys
import tempfile

from policies import CALLS, MIB, geometric_mean, replayed

WHOLE = "mortise"
VARIANTS = [
    (WHOLE, "all parts"),
    (WHOLE + ":join=false", "nothing is joined: one growing range, best fit"),
    (WHOLE + ":share_ends=false", "joined blocks begin with a page of their own"),
    (WHOLE + ":rhythm=false", "no place is remembered from step to step"),
    (WHOLE + ":small=512", "small blocks live among the large ones"),
    (WHOLE + ":slack_fraction=0,growth_fraction=0", "joined at once, the device is asked for no more than is missing"),
    (WHOLE + ":quick=false", "freed blocks are merged at once"),
    (WHOLE + ":pages_apart=true", "each page is taken by itself"),
]
PLANNED = WHOLE + ":plan"  # what a plan of the history, looked for for 2 s, buys on top
PEERS = ["expandable", "caching"]
BLUE, ORANGE, GREY, INK = "#0072b2", "#d55e00", "#999999", "#333333"


def measured(asked):
    specs = [spec for spec, _ in VARIANTS] + PEERS
    found = {}
    for trace in asked.traces:
        with tempfile.TemporaryDirectory() as folder:
            plan = os.path.join(folder, "history.plan")
            subprocess.run([asked.tenon, "plan", trace, "-o", plan, "--budget", "2s", "--quiet"], check=True,
                           stdout=subprocess.DEVNULL)
            rows = replayed(asked.tenon, asked.capacity, [*specs, f"{WHOLE}:plan={plan}"], trace)
            rows[PLANNED] = rows.pop(f"{WHOLE}:plan={plan}")
        requested = max(row["peak_requested_bytes"] for row in rows.values())
        if requested < 16 * MIB:
            continue
        for spec, row in rows.items():
            if row["ooms"]:
                sys.exit(f"{trace}: {spec} runs out of memory on {asked.capacity}")
        name = os.path.basename(trace).split(".")[0]
        found[name] = {
            spec: {
                "ratio": row["peak_reserved_bytes"] / requested,
                "within": row["peak_reserved_bytes"] <= 1.05 * requested + 8 * MIB,
                "calls": sum(row[kind] for kind in CALLS),
            }
            for spec, row in rows.items()
        }
    return found


def print_tables(found):
    whole = geometric_mean([history[WHOLE]["ratio"] for history in found.values()])
    print("| variant | what is left out | geometric mean | of it by that part | worst | within 1.05 × + 8 MiB | calls to the device |")
    print("|---|---|---|---|---|---|---|")
    for spec, words in VARIANTS + [(PLANNED, "nothing: with a plan of the history")] + [(peer, "") for peer in PEERS]:
        cells = [history[spec] for history in found.values()]
        ratio = geometric_mean([cell["ratio"] for cell in cells])
        part = "" if spec == WHOLE or not words else f"{100 * (ratio - whole):+.1f} %"
        print(f"| `{spec}` | {words} | {ratio:.3f} | {part} | {max(cell['ratio'] for cell in cells):.3f} | "
              f"{sum(cell['within'] for cell in cells)} of {len(cells)} | {sum(cell['calls'] for cell in cells)} |")
    print("\n| history | " + " | ".join(f"`{spec}`" for spec, _ in VARIANTS) + " |")
    print("|---" * (1 + len(VARIANTS)) + "|")
    for name, history in found.items():
        print(f"| {name} | " + " | ".join(f"{history[spec]['ratio']:.3f}" for spec, _ in VARIANTS) + " |")


def picture(width, height, title, parts):
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="12" '
            f'fill="{INK}">\n<title>{title}</title>\n<rect width="{width}" height="{height}" fill="#ffffff"/>\n'
            + "\n".join(parts) + "\n</svg>\n")


def parts_picture(found):
    """A bar for each variant: how much more is reserved than lives, on the geometric mean."""
    rows = [spec for spec, _ in VARIANTS] + PEERS
    excess = {spec: 100 * (geometric_mean([history[spec]["ratio"] for history in found.values()]) - 1) for spec in rows}
    left, scale = 300, 360 / max(excess.values())
    parts = ['<text x="10" y="20">reserved beyond what lives, % of it, geometric mean of '
             f'{len(found)} histories</text>']
    for i, spec in enumerate(rows):
        y = 36 + 24 * i
        colour = BLUE if spec == WHOLE else GREY if spec in PEERS else ORANGE
        parts.append(f'<text x="{left - 8}" y="{y + 13}" text-anchor="end">{spec}</text>')
        parts.append(f'<rect x="{left}" y="{y}" width="{excess[spec] * scale:.1f}" height="16" fill="{colour}"/>')
        parts.append(f'<text x="{left + excess[spec] * scale + 6:.1f}" y="{y + 13}">{excess[spec]:.1f}</text>')
    return picture(720, 44 + 24 * len(rows), "What the parts of mortise buy", parts)


def histories_picture(found):
    """A line for each history: from mortise to mortise without joints, and where the peers are."""
    top = 0.4
    order = sorted(found, key=lambda name: found[name][WHOLE + ":join=false"]["ratio"])
    left, scale = 210, 480 / top

    def at(ratio):
        return left + min(ratio - 1, top) * scale

    def dot(name, spec, y, colour):
        ratio = found[name][spec]["ratio"]
        shown = f'<circle cx="{at(ratio):.1f}" cy="{y}" r="3.5" fill="{colour}"/>'
        if ratio - 1 > top:
            shown = f'<path d="M{at(ratio) + 2:.1f} {y - 4}l7 4l-7 4z" fill="{colour}"/>'
        return shown

    legend = [(WHOLE, BLUE), (WHOLE + ":join=false", ORANGE), ("caching", GREY)]
    parts = []
    x = left
    for spec, colour in legend:
        parts.append(f'<circle cx="{x}" cy="14" r="3.5" fill="{colour}"/><text x="{x + 8}" y="18">{spec}</text>')
        x += 40 + 7 * len(spec)
    height = 44 + 15 * len(order)
    for percent in range(0, 41, 10):
        x = at(1 + percent / 100)
        parts.append(f'<path d="M{x:.1f} 28V{height - 14}" stroke="#dddddd"/><text x="{x:.1f}" y="{height - 2}" '
                     f'text-anchor="middle">{percent} %</text>')
    for i, name in enumerate(order):
        y = 36 + 15 * i
        parts.append(f'<text x="{left - 10}" y="{y + 4}" text-anchor="end">{name}</text>')
        ends = [at(found[name][spec]["ratio"]) for spec, _ in legend[:2]]
        parts.append(f'<path d="M{ends[0]:.1f} {y}H{ends[1]:.1f}" stroke="{ORANGE}"/>')
        parts += [dot(name, spec, y, colour) for spec, colour in reversed(legend)]
    return picture(720, height, "Reserved beyond what lives, by history", parts)


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("tenon")
    parser.add_argument("--capacity", default="80GiB")
    parser.add_argument("--out", default="bench/results")
    parser.add_argument("traces", nargs="+")
    asked = parser.parse_args()
    found = measured(asked)
    if not found:
        sys.exit("none of these histories needs 16 MiB")
    print_tables(found)
    for name, drawn in (("parts", parts_picture(found)), ("histories", histories_picture(found))):
        with open(os.path.join(asked.out, f"mortise_{name}.svg"), "w", encoding="utf-8") as file:
            file.write(drawn)


if __name__ == "__main__":
    main()
