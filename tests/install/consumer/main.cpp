// The same in C++20: two ranks of one process add up numbers, by the installed twins.
#include <zerocomm/zerocomm.hpp>

#include <cstdio>
#include <thread>
#include <vector>

int main() try {
  auto comms = zc::Comm::create_threads(2);
  bool good[2] = {};
  const auto run = [&](std::size_t rank) {
    const std::vector<double> mine(3, static_cast<double>(rank + 1));
    std::vector<double> sum(3);
    zc::all_reduce(comms[rank], mine, sum, ZC_OP_SUM);
    good[rank] = sum == std::vector<double>(3, 3.0);
  };
  std::thread other(run, 1U);
  run(0);
  other.join();
  return good[0] && good[1] ? 0 : 1;
} catch (const zc::Error& error) {
  std::puts(error.what());
  return 1;
}
