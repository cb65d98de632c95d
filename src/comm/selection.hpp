// Which form moves the data of a native call, and how it stores: a pure function of values that all ranks share, over
// a small table. Ranks compare the table, and what ZC_ALGO changes of it, when they make a communicator.
#pragma once

#include "comm/call.hpp"
#include "device/stores.hpp"

#include <zerocomm/coll.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

namespace zerocomm::comm {

// staged: in rounds through memory that all ranks share. pull: each rank makes its own result out of the others'
// sources. spread: each rank makes an equal part of all results, and stores it wherever it belongs.
enum class Form : std::uint8_t { staged, pull, spread };
const char* form_name(Form form) noexcept;

// What the choice for one call depends on.
struct CallFacts {
  Collective collective{};
  std::uint64_t ranks = 0;
  std::uint64_t moved_bytes = 0;         // the least that all ranks together read and write for it
  std::uint64_t most_private_bytes = 0;  // the largest source that others read and that is not shared
  bool is_skewed = false;                // blocks so uneven that the rank with the largest would be waited for
  bool in_place = false;
  bool swaps = false;             // blocks change places: nobody can read one that its owner has written already
  bool sources_shared = false;    // every rank can reach all sources that it may need
  bool sources_readable = false;  // or copy from them through the system
  bool results_shared = false;    // every rank can reach all results
};

struct Choice {
  Form form = Form::staged;
  device::Stores stores = device::Stores::cached;  // of results
  const char* obstacle = nullptr;                  // why the form that ZC_ALGO asks for cannot be had for this call
};

// The table, with what ZC_ALGO changes.
class Selection {
 public:
  static constexpr std::size_t kRows = 10;

  Selection() = default;
  // "collective=form,..." where a form may be followed by /cached or /streaming. Throws Error(ARGUMENT).
  explicit Selection(const std::string& text);
  // What ZC_ALGO says.
  static Selection of_environment();

  Choice choose(const CallFacts& facts) const noexcept;
  // Does ZC_ALGO say anything of it?
  bool changes(Collective collective) const noexcept;
  // Does a call of it go through staging whatever its buffers are, since that was asked for?
  bool forces_staging(Collective collective) const noexcept;
  // Of everything that a choice depends on, besides the call.
  std::uint64_t fingerprint() const;
  // Each row of the table in words: the collective, and what is chosen for it.
  void print(const std::function<void(const char* name, const std::string& value, const std::string& why)>& row) const;

 private:
  enum class Asked : std::uint8_t { nothing, cached, streaming };
  struct Override {
    bool has_form = false;
    Form form = Form::staged;
    Asked stores = Asked::nothing;
  };
  void parse(const std::string& item);

  std::array<Override, kRows> overrides_{};
};

}  // namespace zerocomm::comm
