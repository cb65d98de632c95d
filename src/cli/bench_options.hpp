// What zc bench takes, once the command line is read.
#pragma once

#include "cli/bench_collectives.hpp"

#include <zerocomm/types.h>

#include <optional>
#include <string>
#include <vector>

namespace zerocomm::cli {

// As on the command line; empty: the default.
struct BenchOptions {
  std::vector<std::string> collectives;
  std::optional<int> ranks;  // default: one for each usable core
  bool threads = false;
  std::string min_bytes, max_bytes, step_bytes;
  std::optional<int> factor;
  int iterations = 20, warmup = 5, check = 1;
  std::string op = "sum", dtype = "float";
  int root = 0;
  std::string triad_bytes;
  std::string memory = "registered", in_place = "both", skew = "even";
  bool loop = false, pin = false;
  double timeout_s = 0;
  std::string compare, peers;  // groups, separated by commas; folder of their programs
  int rounds = 3;
  double min_busbw = -1;
  bool csv = false, quiet = false;
  std::string output, json;
  std::string serve;               // not for people: this process is a rank of the bench with this socket
  std::vector<std::string> words;  // the command line, for the JSON file
};

// The same, checked.
struct BenchPlan {
  std::vector<Collective> collectives;
  std::vector<zc_dtype> dtypes;
  std::vector<zc_op> ops;
  std::vector<BenchPlace> places;
  std::vector<std::size_t> sizes_bytes;
  std::size_t step_bytes = 0;  // 0: `factor`
  int factor = 0;
  int ranks = 0;
  int root = 0;
  bool skewed = false;
  bool plain = false;  // memory
  bool loop = false;
  bool pin = false;
  std::size_t triad_bytes = 0;  // all arrays together; 0: no triad
  int iterations = 0, warmup = 0;
  bool check = true;
  std::vector<std::string> peers;
  int rounds = 1;
};

// Throws Failure (usage) that names the option and what it may be.
BenchPlan plan_bench(const BenchOptions& options, int usable_cores);

// One line of the table before it is measured.
struct BenchCase {
  Collective collective = Collective::all_reduce;
  zc_dtype dtype = ZC_DTYPE_NONE;
  zc_op op = ZC_OP_NONE;
  std::size_t count = 0;  // elements, as nccl-tests counts the size
};
std::vector<BenchCase> bench_cases(const BenchPlan& plan);

// Bytes that the ranks of one group will hold together.
double bench_memory_bytes(const BenchPlan& plan);

}  // namespace zerocomm::cli
