"""Losses and accuracy of the LibTorch example: the same for every stage and number of ranks, and for LibTorch alone.

compare_test.py ZC ZC_LIBTORCH quick|full: full takes 200 steps, after which the network must also have learned something.
"""
import pathlib
import re
import subprocess
import sys

PROGRAM_LINES = 75  # sharded_module.hpp: what a LibTorch program needs for ZeRO


def code_lines(text):
    """Lines that hold more than comments, preprocessor directives and braces."""
    return sum(bool(re.sub(r"//.*|^\s*#.*|[{};\s]", "", line)) for line in text.splitlines())


def run(command):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}: exit status {done.returncode}\n{done.stdout}{done.stderr}")
    losses = re.search(r"^losses ([0-9a-f]{16})$", done.stdout, re.M)
    correct = re.search(r"^correct (\d+) of (\d+)$", done.stdout, re.M)
    held = re.search(r"parameters (\d+), gradients (\d+), moments (\d+)", done.stdout)
    used = re.search(r"units used (\d+) times, of that fetched ahead or kept (\d+)", done.stdout)
    if used and int(used[2]) * 2 < int(used[1]):
        sys.exit(f"{' '.join(command)}: most units were fetched only when they were needed\n{done.stdout}")
    return (losses[1], int(correct[1]), int(correct[2])), held and [int(number) for number in held.groups()]


def main():
    zc, program, length = sys.argv[1:]
    full = length == "full"
    problems = []

    def training(micro_batches, stage=None, ranks=1):
        options = [program, "--steps", "200" if full else "30", "--micro-batches", str(micro_batches)]
        if stage is None:
            return run([*options, "--plain"])[0]
        result, held = run([zc, "run", "-n", str(ranks), "--", *options, "--stage", str(stage)])
        # parameters, gradients, moments: of the whole, or one rank's part of it; padding is a few hundred bytes
        for what, number, first_cut in zip(("parameters", "gradients", "moments"), held, (3, 2, 1)):
            whole = 32402 * (8 if what == "moments" else 4)
            if stage == 1 and what == "gradients":
                continue  # a full buffer and, with several passes, the sum of the passes
            share = whole / ranks if stage >= first_cut else whole
            if not share - 2048 <= number <= share + 2048:
                problems.append(f"stage {stage}, {ranks} ranks: {number} bytes of {what}, expected about {share}")
        return result

    wanted = {2: [(0, 2), (2, 2), (3, 2), (3, 1)]}  # micro-batches of a step: (stage, ranks)
    if full:
        wanted = {2: [(stage, ranks) for stage in range(4) for ranks in (1, 2)], 3: [(3, 3)], 4: [(2, 4), (3, 4)]}
    for micro_batches, configurations in wanted.items():
        alone = training(micro_batches)
        print(f"{micro_batches} micro-batches, LibTorch alone: losses {alone[0]}, {alone[1]} of {alone[2]} right")
        if full and alone[1] * 100 <= alone[2] * 80:
            problems.append(f"{micro_batches} micro-batches: only {alone[1]} of {alone[2]} are right")
        for stage, ranks in configurations:
            other = training(micro_batches, stage, ranks)
            if other != alone:
                problems.append(f"{micro_batches} micro-batches, stage {stage}, {ranks} ranks: {other}, not {alone}")
    if full and training(4, 3, 2)[0] == alone[0]:  # two ranks of two passes: another order of addition
        problems.append("another order of addition gives the same losses: these losses prove nothing")

    lines = code_lines((pathlib.Path(__file__).parent / "sharded_module.hpp").read_text())
    print(f"the integration has {lines} lines")
    if not 20 < lines < PROGRAM_LINES:
        problems.append(f"the integration has {lines} lines, not fewer than {PROGRAM_LINES}")
    sys.exit("\n".join(problems) or 0)


main()
