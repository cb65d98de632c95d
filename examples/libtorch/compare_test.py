"""The LibTorch example at every stage and number of ranks against LibTorch alone: losses equal bit for bit.

compare_test.py ZC ZC_LIBTORCH DATA quick|full: full takes 200 steps, after which the network must have learned something.
"""

import pathlib
import re
import subprocess
import sys

# Lines of code that a LibTorch program needs for ZeRO: all of sharded_module.hpp, and those of main.cpp that make the
# communicator and the module, name the phases, call the engine or hand its tensors to the optimizer.
MOST_LINES = 74
IN_LOOP = re.compile(r"zc::Comm::create|\bShardedModule\b|\bzc_phase\b|\.engine\(\)\.|\.owned\(\)")
UNITS = 9
zc, program, data, length = sys.argv[1:]
full = length == "full"
problems = []


def run(command):
    done = subprocess.run(command, capture_output=True, text=True, timeout=250)
    losses = re.search(r"^losses ([0-9a-f]{16})$", done.stdout, re.M)
    correct = re.search(r"^correct (\d+) of 10000$", done.stdout, re.M)
    if done.returncode != 0 or not losses or not correct:
        sys.exit(f"{' '.join(command)}: exit status {done.returncode}\n{done.stdout}{done.stderr}")
    return (losses[1], int(correct[1])), done.stdout


def training(steps, micro_batches):
    return [program, "--data", data, "--steps", str(steps), "--micro-batches", str(micro_batches)]


def alone(steps, micro_batches):
    result, _ = run([*training(steps, micro_batches), "--plain"])
    print(f"{steps} steps of {micro_batches} micro-batches, LibTorch alone: losses {result[0]}, {result[1]} right")
    return result


def sharded(steps, micro_batches, stage, ranks, wanted):
    """Bytes that a rank holds."""
    who = f"{steps} steps of {micro_batches} micro-batches, stage {stage}, {ranks} ranks"
    command = [zc, "run", "-n", str(ranks), "--", *training(steps, micro_batches), "--stage", str(stage)]
    result, text = run(command)
    held = int(re.search(r"^bytes (\d+)", text, re.M)[1])
    room = re.search(r"gathered peak (\d+), budget peak (\d+) of (\d+)", text)
    prefetched = int(re.search(r"units prefetched (\d+)", text)[1])
    print(f"{who}: losses {result[0]}, {result[1]} right, {held} bytes, {room[0]}, {prefetched} prefetched", flush=True)
    if result != wanted:
        problems.append(f"{who}: {result}, and LibTorch alone {wanted}")
    if int(room[2]) > int(room[3]):
        problems.append(f"{who}: more than the budget: {room[0]}")
    # From the second pass on the order is known: backward at least finds every unit but its first gathered ahead.
    if stage == 3 and prefetched < (UNITS - 1) * (steps - 1):
        problems.append(f"{who}: only {prefetched} units were prefetched")
    return held


def code_lines(text, only=re.compile("")):
    lines = [line.strip() for line in text.splitlines()]
    return sum(1 for line in lines if line and not line.startswith("//") and only.search(line))


def main():
    steps = 200 if full else 5
    wanted = alone(steps, 2)
    if full and wanted[1] <= 8000:
        problems.append(f"only {wanted[1]} of 10000 are right")
    held = {stage: sharded(steps, 2, stage, 2, wanted) for stage in (0, 1, 2, 3)}
    if not held[0] > held[1] > held[2] > held[3]:
        problems.append(f"the bytes of a rank do not fall from stage to stage: {held}")
    for stage in (0, 2, 3) if full else (3,):
        sharded(steps, 2, stage, 1, wanted)
    # A third is no power of two: dividing once after the sum is not the same as dividing the parts.
    wanted = alone(5, 3)
    sharded(5, 3, 3, 3, wanted)
    if full:
        sharded(5, 3, 2, 1, wanted)
        wanted = alone(20, 4)
        for stage in (2, 3):
            sharded(20, 4, stage, 4, wanted)
        # Two ranks of two passes each add up in another order.
        if run([zc, "run", "-n", "2", "--", *training(20, 4)])[0][0] == wanted[0]:
            problems.append("another order of addition gives the same losses: these losses prove nothing")

    folder = pathlib.Path(__file__).parent
    in_header = code_lines((folder / "sharded_module.hpp").read_text())
    in_loop = code_lines((folder / "main.cpp").read_text(), IN_LOOP)
    print(f"the integration has {in_header} + {in_loop} lines")
    if in_loop < 10 or in_header + in_loop > MOST_LINES:
        problems.append(f"the integration has {in_header} + {in_loop} lines, not {MOST_LINES} at most")
    sys.exit("\n".join(problems) or 0)


main()
