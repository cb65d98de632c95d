#include "transport/flight.hpp"

#include <cstring>

namespace zerocomm::transport {
namespace {

// Places of the words in an entry.
enum Word : std::size_t { kNumber, kBegin, kEnd, kKindAndStatus, kCall, kBrief, kLabel };

std::uint64_t pack_kind(std::uint32_t kind, std::int32_t status) {
  return std::uint64_t{kind} << 32 | static_cast<std::uint32_t>(status);
}

}  // namespace

std::uint64_t FlightRing::begin(const FlightRecord& record) noexcept {
  const std::uint64_t number = head_.fetch_add(1) + 1;
  auto& words = entry(number).words;
  std::uint64_t label[2];
  std::memcpy(label, record.label, sizeof label);
  words[kNumber].store(0);
  words[kBegin].store(static_cast<std::uint64_t>(record.begin_ns));
  words[kEnd].store(static_cast<std::uint64_t>(record.end_ns));
  words[kKindAndStatus].store(pack_kind(record.kind, record.status));
  words[kCall].store(record.call);
  words[kBrief].store(record.brief);
  words[kLabel].store(label[0]);
  words[kLabel + 1].store(label[1]);
  words[kNumber].store(number);
  return number;
}

void FlightRing::finish(std::uint64_t number, std::int32_t status, std::int64_t end_ns) noexcept {
  auto& words = entry(number).words;
  if (words[kNumber].load() != number) return;  // overwritten by younger records meanwhile
  words[kKindAndStatus].store(pack_kind(static_cast<std::uint32_t>(words[kKindAndStatus].load() >> 32), status));
  words[kEnd].store(static_cast<std::uint64_t>(end_ns));
}

bool FlightRing::read(std::uint64_t number, FlightRecord* record) const noexcept {
  const auto& words = entry(number).words;
  if (number == 0 || words[kNumber].load() != number) return false;
  record->number = number;
  record->begin_ns = static_cast<std::int64_t>(words[kBegin].load());
  record->end_ns = static_cast<std::int64_t>(words[kEnd].load());
  const std::uint64_t kind = words[kKindAndStatus].load();
  record->kind = static_cast<std::uint32_t>(kind >> 32);
  record->status = static_cast<std::int32_t>(static_cast<std::uint32_t>(kind));
  record->call = words[kCall].load();
  record->brief = words[kBrief].load();
  const std::uint64_t label[2] = {words[kLabel].load(), words[kLabel + 1].load()};
  std::memcpy(record->label, label, sizeof label);
  return words[kNumber].load() == number;
}

}  // namespace zerocomm::transport
