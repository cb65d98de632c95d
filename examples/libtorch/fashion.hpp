// Fashion-MNIST as Debian packages it: 28 x 28 grey images in ten classes.
#pragma once

#include <torch/torch.h>

#include <string>

struct Fashion {
  torch::Tensor images;  // [n, 784], 0 to 1
  torch::Tensor labels;  // [n]

  // The training images ("train") or the test images ("t10k") in a directory. Throws std::runtime_error.
  static Fashion read(const std::string& directory, const std::string& part);
  // Rows [first, first + count), beginning again at the end.
  Fashion rows(std::int64_t first, std::int64_t count) const;
};
