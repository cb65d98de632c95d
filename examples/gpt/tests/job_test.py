"""The main job with ranks as threads: what it promises on screen and in its JSON, and how it refuses nonsense."""

import json
import math
import os
import subprocess
import sys
import tempfile
import unittest

PROGRAM = sys.argv.pop(1)
QUICK = "--quick" in sys.argv and not sys.argv.remove("--quick")  # builds that are slow, such as with sanitizers


def run(*options, seconds=300):
    return subprocess.run([PROGRAM, "--threads", *options], capture_output=True, text=True, timeout=seconds)


def rows_of(*options):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "rows.json")
        done = run("--model", "tiny", "--json", path, *options)
        if done.returncode != 0:
            raise AssertionError(done.stderr)
        with open(path) as file:
            return json.load(file)["rows"], done.stdout


class MainJob(unittest.TestCase):
    def check(self, rows, losses_fall):
        self.assertEqual([(row["stage"], row["ranks"]) for row in rows], [(0, 4), (1, 4), (2, 4), (3, 4), (0, 1)])
        for row in rows:
            self.assertEqual(row["weights_hash"], rows[0]["weights_hash"])
            self.assertEqual((row["loss_first"], row["loss_last"]), (rows[0]["loss_first"], rows[0]["loss_last"]))
            self.assertEqual(row["state_bytes"], row["state_bytes_formula"])
            self.assertEqual(row["logical_bytes"], row["logical_bytes_formula"])
            self.assertLessEqual(row["budget_peak_bytes"], row["budget_bytes"])
            self.assertEqual(row["skipped_steps"], 0)
        self.assertAlmostEqual(rows[0]["loss_first"], math.log(256), delta=0.2)
        self.assertGreater(rows[0]["loss_first"] - rows[0]["loss_last"], losses_fall)
        for row in rows[:4]:
            self.assertGreater(row["buckets_before_end"], 0)
        for row in rows[1:4]:  # in stage 0 the other ranks may have done all the work
            self.assertGreater(row["moved_bytes"], 0)
        self.assertLess(rows[3]["state_bytes"], rows[2]["state_bytes"])

    def test_stages_agree_to_the_bit_in_f32(self):
        rows, output = rows_of("--steps", "4" if QUICK else "20")
        self.check(rows, 0.2 if QUICK else 1.5)
        self.assertIn("all rows agree", output)

    def test_stages_agree_to_the_bit_in_bf16(self):
        rows, _ = rows_of("--steps", "3" if QUICK else "20", "--dtype", "bf16")
        self.check(rows, 0.1 if QUICK else 1.5)

    def test_stages_agree_with_clipping_that_is_active_at_every_step(self):
        rows, _ = rows_of("--steps", "3", "--clip", "0.05")
        self.check(rows, 0.0)
        self.assertEqual({row["clipped_steps"] for row in rows}, {3})

    def test_clipping_changes_the_weights(self):
        clipped, _ = rows_of("--steps", "2", "--stage", "2", "--clip", "0.05")
        free, _ = rows_of("--steps", "2", "--stage", "2", "--clip", "0")
        self.assertNotEqual(clipped[0]["weights_hash"], free[0]["weights_hash"])

    def test_stages_agree_when_every_rank_accumulates(self):
        rows, _ = rows_of("--steps", "2", "--accumulate", "3", "--ranks", "3")
        self.assertEqual(len({row["weights_hash"] for row in rows}), 1)
        self.assertEqual([(row["stage"], row["ranks"]) for row in rows], [(0, 3), (1, 3), (2, 3), (3, 3)])

    def test_two_runs_give_the_same_bits(self):
        first, _ = rows_of("--steps", "2", "--stage", "3")
        second, _ = rows_of("--steps", "2", "--stage", "3")
        self.assertEqual(first[0]["weights_hash"], second[0]["weights_hash"])


class Misuse(unittest.TestCase):
    def refuse(self, *options, says):
        done = run(*options, seconds=60)
        self.assertNotEqual(done.returncode, 0, options)
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        for words in says:
            self.assertIn(words, done.stderr)

    def test_a_missing_text_is_named(self):
        self.refuse("--text", "/nonexistent/text", says=["/nonexistent/text"])

    def test_an_empty_text_is_named(self):
        with tempfile.NamedTemporaryFile() as file:
            self.refuse("--text", file.name, says=[file.name, "empty"])

    def test_a_folder_is_no_text(self):
        self.refuse("--text", "/tmp", says=["/tmp"])

    def test_no_ranks(self):
        self.refuse("--ranks", "0", says=["--ranks", "1"])

    def test_stage_four(self):
        self.refuse("--stage", "4", says=["--stage", "'4'"])

    def test_a_budget_that_is_too_small_is_refused_with_the_bytes_needed(self):
        self.refuse("--model", "tiny", "--stage", "3", "--budget", "1000", says=["BUDGET", "1000 bytes", "at least"])

    def test_json_that_cannot_be_written(self):
        self.refuse("--model", "tiny", "--steps", "1", "--json", "/nonexistent/rows.json", says=["/nonexistent/rows.json"])

    def test_a_full_disk(self):
        self.refuse("--model", "tiny", "--steps", "1", "--stage", "0", "--json", "/dev/full", says=["/dev/full"])

    def test_unknown_options(self):
        self.refuse("--frobnicate", "1", says=["--frobnicate"])
        self.refuse("--frobnicate", says=["--frobnicate"])
        self.refuse("nonsense", says=["nonsense"])

    def test_numbers_that_are_none(self):
        self.refuse("--steps", "ten", says=["--steps", "'ten'"])
        self.refuse("--clip", "-1", says=["--clip", "'-1'"])
        self.refuse("--ranks", "99999999999999999999", says=["--ranks"])

    def test_help_is_no_error(self):
        done = run("--help")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn("--stage", done.stdout)


unittest.main()
