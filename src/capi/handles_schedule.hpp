// What a zc_schedule is.
#pragma once

#include "schedule/step.hpp"

#include <utility>

struct zc_schedule {
  explicit zc_schedule(zerocomm::schedule::Schedule schedule) : value(std::move(schedule)) {}

  const zerocomm::schedule::Schedule value;
};
