"""zc bench from the outside: small jobs of every collective, what they print, how they end. `bench_test.py ZC`"""

import csv
import io
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

PROGRAM = None
NAMES = [
    "all_reduce", "reduce_scatter", "all_gather", "broadcast", "reduce", "all_to_all", "barrier",
    "reduce_scatter_v", "all_gather_v", "all_to_all_v",
]  # fmt: skip
UNEVEN = "reduce_scatter_v,all_gather_v,all_to_all_v"
TOP_KEYS = ["version", "start_time", "args", "env", "config", "results", "out_of_bounds", "average_bus_bandwidth", "end_time"]
ROW_KEYS = ["size", "count", "type", "redop", "root", "out_of_place", "in_place", "time", "time_p10", "time_p90"]
PLACE_KEYS = [
    "time", "alg_bw", "bus_bw", "nwrong", "time_p10", "time_p90", "stream_percent", "bound_percent", "skew_us", "wrong", "peers",
]  # fmt: skip

# A peer whose results are wrong, one that cannot do anything, and one that ends at once.
PEER = """#!{python}
import socket, sys
name, group, ranks = (sys.argv[sys.argv.index(word) + 1] for word in ("--socket", "--group", "--ranks"))
if {ends}:
    sys.exit("no network")
sockets = []
for rank in range(int(ranks)):
    s = socket.socket(socket.AF_UNIX)
    s.connect("\\0" + name)
    s.sendall(f"hello {{group}} {{rank}} {{ranks}} Fake 1.0\\n".encode())
    sockets.append(s)
files = [s.makefile() for s in sockets]
while True:
    for s, f in zip(sockets, files):
        line = f.readline()
        if line in ("", "quit\\n"):
            sys.exit(0)
        s.sendall({answer}.encode())
"""


def bench(*words, launcher=()):
    environment = {name: value for name, value in os.environ.items() if not name.startswith("NCCL_TESTS")}
    return subprocess.run(
        [*launcher, PROGRAM, "bench", *words], capture_output=True, text=True, timeout=60, check=False, env=environment
    )


class Bench(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)

    def measure(self, *words, launcher=()):
        path = self.folder / "out.json"
        result = bench(*words, "-J", str(path), launcher=launcher)
        self.assertEqual((result.returncode, result.stderr), (0, ""), result.stdout)
        return result.stdout, json.loads(path.read_text(encoding="utf-8"))

    def check(self, data, rows):
        for key in TOP_KEYS:
            self.assertIn(key, data)
        self.assertEqual(data["out_of_bounds"], {"count": 0, "okay": True})
        self.assertEqual(data["average_bus_bandwidth"]["okay"], "unchecked")
        self.assertEqual(len(data["results"]), rows)
        for row in data["results"]:
            self.assertEqual([key for key in ROW_KEYS if key not in row], [])
            self.assertIn(row["same_bits"], (True, None))
            places = [row[name] for name in ("out_of_place", "in_place") if row[name]]
            self.assertTrue(places)
            for place in places:
                self.assertEqual([key for key in PLACE_KEYS if key not in place], [])
                self.assertEqual((place["wrong"], place["nwrong"]), (0, 0))
                self.assertGreater(place["time"], 0)
                self.assertLessEqual(place["time_p10"], place["time"])
            self.assertEqual(row["time"], places[0]["time"])

    def test_every_collective_is_right_with_one_two_and_three_ranks_as_processes_and_as_threads(self):
        for ranks in "123":
            for how in ([], ["--threads"]):
                with self.subTest(ranks=ranks, how=how):
                    table, data = self.measure("all", "--ranks", ranks, "-b", "8", "-e", "8K", "-f", "1024", "-n", "3", "-w", "1", *how)
                    self.check(data, 2 * len(NAMES) - 1)
                    self.assertEqual({row["collective"] for row in data["results"]}, set(NAMES))
                    lines = [line.split() for line in table.splitlines() if not line.startswith("#")]
                    self.assertEqual(len(lines), 2 * len(NAMES) - 1)
                    for line, row in zip(lines, data["results"]):
                        self.assertEqual(line[:4], [str(row["size"]), str(row["count"]), row["type"], row["redop"]])
                        self.assertEqual(len(line), 20)
                    titles = [line[2:] for line in table.splitlines() if line[2:] in NAMES]
                    self.assertEqual(titles, NAMES)
                    self.assertEqual(data["config"]["ranks_are"], "threads" if how else "processes")
                    pids = [device["pid"] for device in data["config"]["devices"]]
                    self.assertEqual(len(set(pids)), 1 if how else int(ranks))

    def test_every_type_and_operation_is_right(self):
        for words in (["--threads"], ["--memory", "plain"]):
            _, data = self.measure("all_reduce,reduce_scatter,all_gather", "-d", "all", "-o", "all", "--ranks", "3", "-b", "3K", "-e", "3K", "-n", "1", "-w", "0", *words)
            # 4 integer types with 4 operations, 4 floating ones with 6, for two reductions; 9 types that are moved.
            self.check(data, 2 * (4 * 4 + 4 * 6) + 9)

    def test_blocks_may_all_be_on_one_rank(self):
        _, data = self.measure(UNEVEN, "--skew", "one", "-r", "2", "--ranks", "3", "-b", "96K", "-e", "96K", "-n", "2", "--threads")
        self.check(data, 3)
        self.assertEqual({row["root"] for row in data["results"]}, {"2"})
        self.assertIsNone(data["results"][2]["in_place"])
        self.assertGreater(data["results"][0]["stream_percent"], 0)

    def test_loop_timing_is_checked_too(self):
        _, data = self.measure("all_reduce", "--loop", "--ranks", "2", "-b", "64", "-e", "64", "-n", "50", "--threads")
        self.check(data, 1)
        self.assertEqual(data["config"]["timing"], "loop")

    def test_a_launcher_may_have_started_the_ranks(self):
        _, data = self.measure("all_gather", "-b", "64", "-e", "64", launcher=[PROGRAM, "run", "-n", "2", "--"])
        self.check(data, 1)
        self.assertEqual(data["config"]["ranks_are"], "of zc run")
        other = bench("all_gather", "--ranks", "3", launcher=[PROGRAM, "run", "-n", "2", "--"])
        self.assertEqual(other.returncode, 2)
        self.assertIn("--ranks 3: zc run has started 2; leave --ranks out", other.stderr)

    def test_the_bound_is_known_from_a_mebibyte_on(self):
        _, data = self.measure("all_gather", "--threads", "--ranks", "2", "-b", "1M", "-e", "1M", "-n", "1", "-w", "0", "--in-place", "in", "--triad", "4M")
        self.assertGreater(data["triad_gbs"], 0)
        self.assertGreater(data["results"][0]["bound_percent"], 0)
        self.assertIsNone(data["results"][0]["out_of_place"])

    def test_csv_has_the_same_numbers_of_fields_everywhere(self):
        result = bench("all_reduce", "--csv", "--threads", "--ranks", "2", "-b", "8", "-e", "32", "-n", "1")
        rows = list(csv.reader(io.StringIO(result.stdout)))
        self.assertEqual(len(rows), 1 + 2 * 2)
        self.assertEqual({len(row) for row in rows}, {len(rows[0])})
        self.assertEqual(rows[1][:3], ["all_reduce", "2", "8"])

    def test_mistakes_are_one_line_and_status_2(self):
        path = self.folder / "nowhere" / "x"
        for words, text in (
            ([], "bench needs a collective"),
            (["all_reduc"], "there is no such collective"),
            (["all_reduce", "--bogus"], "--bogus"),
            (["all_reduce", "--ranks", "0"], "--ranks 0: there may be 1 to 1024"),
            (["all_reduce", "-b", "12x"], "-b 12x: this is no size"),
            (["all_reduce", "-b", "1K", "-e", "8"], "-b 1 KiB is more than -e 8 B"),
            (["all_reduce", "-e", "1T"], "are left"),
            (["all_reduce", "--skew", "one"], "takes no counts"),
            (["limits", "--bytes", "1T"], "are left"),
        ):
            result = bench(*words)
            self.assertEqual((result.returncode, result.stdout), (2, ""), words)
            self.assertRegex(result.stderr, r"\Azc: [^\n]*\n\Z")
            self.assertIn(text, result.stderr)
        result = bench("all_reduce", "-J", str(path))
        self.assertEqual((result.returncode, result.stdout), (1, ""))
        self.assertIn("cannot be written", result.stderr)

    def peer(self, answer, ends=False):
        path = self.folder / "zc_peer_gloo"
        path.write_text(PEER.format(python=sys.executable, answer=repr(answer), ends=ends), encoding="utf-8")
        path.chmod(0o755)
        words = ["all_reduce", "--threads", "--ranks", "2", "-b", "8", "-e", "8", "-n", "1", "-J", str(self.folder / "o.json")]
        result = bench(*words, "--compare", "gloo", "--peers", str(self.folder))
        return result, path

    def test_peers_are_measured_in_turn(self):
        result, _ = self.peer("times 1 1000000000\narrive 1 0\ncheck 0\n")
        self.assertEqual(result.returncode, 0, result.stderr)
        row = json.loads((self.folder / "o.json").read_text(encoding="utf-8"))["results"][0]
        self.assertEqual(row["peers"]["gloo"]["time"], 1e6)
        self.assertAlmostEqual(row["peers"]["gloo"]["ratio"], 1e6 / row["time"])
        self.assertIn("# peer gloo: Fake 1.0\n", result.stdout)

    def test_a_wrong_result_fails_the_job(self):
        result, _ = self.peer("times 1 1000\narrive 1 0\ncheck 1\n")
        self.assertEqual(result.returncode, 1)
        # 2 ranks, 3 rounds, 2 forms
        self.assertIn("# Out of bounds values : 12 FAILED", result.stdout)

    def test_what_a_peer_cannot_do_is_said_in_its_cell(self):
        result, _ = self.peer("unsupported no such operation\n")
        self.assertEqual(result.returncode, 0)
        self.assertIn("  unsupported     N/A", result.stdout)

    def test_peers_that_are_not_there_are_an_error(self):
        result, path = self.peer("", ends=True)
        self.assertEqual(result.returncode, 1)
        self.assertEqual(result.stderr, "zc: gloo: its program has ended: no network\n")
        path.unlink()
        result = bench("all_reduce", "-e", "8", "--compare", "gloo", "--peers", str(self.folder))
        self.assertEqual(result.returncode, 1)
        self.assertIn("build the target zc_peer_gloo (Debian: apt install libgloo-dev)", result.stderr)

    def test_limits_are_shown(self):
        data = json.loads(bench("limits", "--bytes", "256K", "--threads", "1", "--json").stdout)
        names = [limit["what"] for limit in data["limits"]]
        for name in ("stream read", "stream fill", "stream copy", "stream triad", "memcpy", "first touch of a page, memfd"):
            self.assertIn(name, names)
        self.assertTrue(all(0 < limit["median"] for limit in data["limits"]))


if __name__ == "__main__":
    PROGRAM = sys.argv.pop(1)
    unittest.main()
