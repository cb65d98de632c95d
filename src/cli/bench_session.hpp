// The measurements of one job, in their order, through a driver whose ranks are there.
#pragma once

#include "cli/bench_driver.hpp"
#include "cli/bench_results.hpp"

#include <functional>

namespace zerocomm::cli {

class BenchSession {
 public:
  // `start`, `show` and `progress` are called as things happen: everything is known but the rows; a row is done; what
  // comes next, 0 to 1 of all.
  struct Listener {
    std::function<void(const BenchRun&)> start;
    std::function<void(const BenchRun&, const BenchRow&)> show;
    std::function<void(double done, const std::string& next)> progress;
  };

  BenchSession(BenchDriver& driver, BenchRun& run, const Listener& listener)
      : driver_(driver), run_(run), listener_(listener) {}

  void measure();

 private:
  struct Sample {
    BenchTime time;
    double skew_us = 0;
    std::int64_t wrong = 0;
    std::string unsupported, by;
  };

  void reserve();
  void measure_triad();
  BenchRow measure_row(const BenchCase& bench_case);
  PlaceResult measure_place(const BenchCase& bench_case, BenchPlace place);
  Sample ask_once(const std::string& group, const std::string& line);
  Sample ask_peer(const std::string& peer, const BenchRequest& request);
  std::optional<double> stream_us(const BenchCase& bench_case, BenchPlace place);
  std::optional<bool> same_bits(const BenchCase& bench_case, BenchPlace place);
  BenchRequest request_of(const BenchCase& bench_case, BenchPlace place) const;

  BenchDriver& driver_;
  BenchRun& run_;
  const Listener& listener_;
};

// The forms of this collective that the plan asks for and that there are.
std::vector<BenchPlace> places_of(const BenchPlan& plan, Collective collective);

inline constexpr const char* kOwnGroup = "zerocomm";

}  // namespace zerocomm::cli
