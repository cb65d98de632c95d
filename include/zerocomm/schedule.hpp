/**
 * Schedules in C++: see schedule.h, whose contracts hold.
 */
#pragma once

#include <zerocomm/schedule.h>
#include <zerocomm/handle.hpp>
#include <zerocomm/types.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace zc {

/** Which schedule to make, as in zc_schedule_config; what is left out has its default. */
struct ScheduleConfig {
  zc_collective collective = ZC_COLLECTIVE_NONE;
  const char *algorithm = nullptr;
  std::int32_t ranks = 0;
  std::int32_t root = 0;
  std::int32_t lanes = 0;
  std::uint32_t chunks = 0;

  zc_schedule_config raw() const noexcept {
    zc_schedule_config config{};
    config.struct_size = sizeof config;
    config.collective = collective;
    config.algorithm = algorithm;
    config.ranks = ranks;
    config.root = root;
    config.lanes = lanes;
    config.chunks = chunks;
    return config;
  }
};

/** An immutable schedule. For a collective: {.schedule = schedule.get()}. */
class Schedule : public detail::Handle<detail::View<zc_schedule>, zc_schedule, zc_schedule_destroy> {
 public:
  using Handle::Handle;

  /** One of the catalogue. */
  static Schedule create(const ScheduleConfig &config) {
    const zc_schedule_config raw = config.raw();
    zc_schedule *schedule = nullptr;
    check(zc_schedule_create(&raw, &schedule));
    return Schedule(schedule);
  }

  /** One from text, as text() writes it. */
  static Schedule parse(const std::string &text) {
    zc_schedule *schedule = nullptr;
    check(zc_schedule_parse(text.c_str(), &schedule));
    return Schedule(schedule);
  }

  std::string text() const {
    std::size_t bytes = 0;
    check(zc_schedule_text(get(), nullptr, 0, &bytes));
    std::string text(bytes, '\0');
    check(zc_schedule_text(get(), text.data(), text.size(), &bytes));
    text.resize(bytes - 1);
    return text;
  }

  zc_schedule_info info() const {
    return detail::read_info<zc_schedule_info>(
        [this](zc_schedule_info *info) { return zc_schedule_get_info(get(), info); });
  }

  /** Prove it, or find where it is broken: the verdict and its text. */
  std::pair<zc_schedule_verdict, std::string> verify() const {
    zc_schedule_verdict verdict{};
    verdict.struct_size = sizeof verdict;
    std::size_t bytes = 0;
    check(zc_schedule_verify(get(), &verdict, nullptr, 0, &bytes));
    std::string text(bytes, '\0');
    check(zc_schedule_verify(get(), &verdict, text.data(), text.size(), &bytes));
    text.resize(bytes - 1);
    return {verdict, text};
  }

  /** What a rank sends and receives; ZC_NONE: the largest figures of any. `config` sets its struct_size here. */
  zc_schedule_costs cost(std::int32_t rank, zc_schedule_cost_config config) const {
    config.struct_size = sizeof config;
    return detail::read_info<zc_schedule_costs>(
        [&](zc_schedule_costs *costs) { return zc_schedule_cost(get(), rank, &config, costs); });
  }
};

/** The catalogue, ordered by collective. */
inline std::vector<zc_algorithm_info> algorithms() {
  std::vector<zc_algorithm_info> rows(zc_schedule_algorithm_count());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    rows[i].struct_size = sizeof rows[i];
    check(zc_schedule_algorithm(i, &rows[i]));
  }
  return rows;
}

}  // namespace zc
