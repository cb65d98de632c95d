// The command line.
#pragma once

#include <zerocomm/layout.h>

#include <cstddef>
#include <span>
#include <string>

namespace fashion {

struct Options {
  zc_stage stage = ZC_STAGE_3;
  std::size_t steps = 200;
  std::size_t micro_batches = 2;  // of all ranks, in a step
  std::string data = ZC_FASHION_MNIST;
  bool plain = false;  // LibTorch without ZeroComm
};

// Throws std::invalid_argument.
Options parse_options(std::span<char*> arguments);

}  // namespace fashion
