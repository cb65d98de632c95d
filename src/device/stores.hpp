// How a kernel writes its result.
#pragma once

#include <cstddef>
#include <cstdint>

namespace zerocomm::device {

// The bytes written are the same. `streaming` stores pass by the caches: less traffic (the old content of a line is not
// read first), and the destination is out of cache afterwards. They pay for destinations beyond the cache that nobody
// reads soon, and lose where the data would have stayed. The kernel orders them before its return, so a release store
// after it publishes them like any others. Where there are none (processors other than x86-64) both are the same.
enum class Stores : std::uint8_t { cached, streaming };

// For kernels. Streaming stores want whole lines: the bytes up to the next one, 0 to 63.
std::size_t bytes_to_line(const void* address) noexcept;

// A release store does not order the streaming stores before it; this does.
void end_of_stream() noexcept;

}  // namespace zerocomm::device
