// The stages of ZeRO as a table: where each state lives. A new stage is a new row.
#pragma once

#include "base/check.hpp"

#include <zerocomm/layout.h>

namespace zerocomm::shard {

// Where a state lives. The letters are those of the literature on sharding groups.
enum class Home : char {
  replicated = 'N',  // whole on every rank
  cut = 'G',         // cut over all ranks
};

struct StageRow {
  zc_stage stage;
  int number;
  Home parameters;
  Home gradients;
  Home optimizer;  // masters and moments
};

inline constexpr StageRow kStageTable[] = {
    {ZC_STAGE_0, 0, Home::replicated, Home::replicated, Home::replicated},
    {ZC_STAGE_1, 1, Home::replicated, Home::replicated, Home::cut},
    {ZC_STAGE_2, 2, Home::replicated, Home::cut, Home::cut},
    {ZC_STAGE_3, 3, Home::cut, Home::cut, Home::cut},
};

// The row of a stage, or Error(ARGUMENT).
inline const StageRow& stage_row(zc_stage stage) {
  for (const StageRow& row : kStageTable)
    if (row.stage == stage) return row;
  throw Error(ZC_ARGUMENT,
              stage == ZC_STAGE_NONE
                  ? std::string("stage is not set (stage 0 is ZC_STAGE_0)")
                  : format("stage %d does not exist; there are ZC_STAGE_0 to ZC_STAGE_3", static_cast<int>(stage)));
}

}  // namespace zerocomm::shard
