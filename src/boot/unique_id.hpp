// A job's name that nobody else has.
#pragma once

#include <string>
#include <string_view>

namespace zerocomm::boot {

// "zc1-" and 128 random bits as hexadecimal digits. Throws Error(SYSTEM).
std::string make_unique_job();

// Whether a text has that form.
bool is_unique_job(std::string_view text) noexcept;

}  // namespace zerocomm::boot
