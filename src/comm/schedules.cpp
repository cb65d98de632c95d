#include "comm/schedules.hpp"

#include "base/check.hpp"
#include "comm/reductions.hpp"
#include "comm/scheduled.hpp"
#include "schedule/catalogue.hpp"
#include "schedule/contract.hpp"
#include "schedule/schedule_text.hpp"
#include "schedule/verify.hpp"

#include <optional>

namespace zerocomm::comm {
namespace {

struct Row {
  Collective call;
  schedule::Collective schedule;
};
constexpr Row kRows[] = {
    {Collective::all_reduce, schedule::Collective::all_reduce},
    {Collective::reduce_scatter, schedule::Collective::reduce_scatter},
    {Collective::reduce_scatter_v, schedule::Collective::reduce_scatter},
    {Collective::all_gather, schedule::Collective::all_gather},
    {Collective::all_gather_v, schedule::Collective::all_gather},
    {Collective::broadcast, schedule::Collective::broadcast},
    {Collective::barrier, schedule::Collective::barrier},
    {Collective::reduce, schedule::Collective::reduce},
    {Collective::all_to_all, schedule::Collective::all_to_all},
    {Collective::gather_to_root, schedule::Collective::gather_to_root},
    {Collective::scatter_from_root, schedule::Collective::scatter_from_root},
};

std::optional<schedule::Collective> collective_of(Collective call) {
  for (const Row& row : kRows)
    if (row.call == call) return row.schedule;
  return std::nullopt;
}

std::uint64_t hash_text(const std::string& text) {
  std::uint64_t hash = 0xcbf29ce484222325ULL;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
  return hash | 1;  // 0 is the native form
}

// Does the result depend on the order in which contributions are combined?
bool depends_on_order(const Operation& operation) {
  if (!is_reduction(operation.collective())) return false;
  const zc_dtype dtype = operation.dtype();
  const bool is_float =
      dtype == ZC_DTYPE_F64 || dtype == ZC_DTYPE_F32 || dtype == ZC_DTYPE_F16 || dtype == ZC_DTYPE_BF16;
  return is_float && operation.op() != ZC_OP_MIN && operation.op() != ZC_OP_MAX;
}

// Some reductions need every contribution as it was brought, in one pass.
void check_passes(const Comm& comm, const Operation& operation, const schedule::Program& program) {
  const bool scales = operation.op() == ZC_OP_PREMUL_SUM, converts = operation.output_dtype() != operation.dtype();
  if (!is_reduction(operation.collective()) || (!scales && !converts)) return;
  for (const schedule::Action& action : program.actions()) {
    if (!action.reduces) continue;
    for (std::uint32_t i = 0; i < action.step.n_chunks; ++i) {
      const schedule::Outcomes& outcome = program.outcome(action, i);
      ZC_REQUIRE(outcome.all_raw && outcome.completes, ZC_UNSUPPORTED,
                 "rank %d: %s by the schedule %s: it adds partial sums, and %s", comm.rank(),
                 collective_name(operation.call.collective), program.key().algorithm.c_str(),
                 scales ? "premul needs every contribution as it was brought"
                        : "another output dtype needs all contributions in one pass");
    }
  }
}

schedule::Partition partition_of(const Operation& operation, std::int32_t ranks, const schedule::Key& key) {
  if (key.chunks == 0) return schedule::Partition::unit(0);
  const auto blocks = static_cast<std::uint32_t>(schedule::block_count(key.collective, key.ranks));
  const std::uint32_t pieces = key.chunks / blocks;
  if (operation.counts != nullptr)
    return schedule::Partition::of_counts({operation.counts, static_cast<std::size_t>(ranks)}, pieces);
  const bool whole = operation.collective() == Collective::all_reduce || operation.collective() == Collective::reduce ||
                     operation.collective() == Collective::broadcast;
  const std::size_t count = operation.call.count;  // of one block where ranks have parts
  return schedule::Partition::even(whole ? count : checked_mul(count, blocks), blocks, pieces);
}

// The caller's own schedule, proved before it moves anything.
KeptProgram take_own(const Comm& comm, const schedule::Schedule& own, const std::string& text) {
  for (const schedule::RankSchedule& rank : own.ranks)
    for (const schedule::Lane& lane : rank.lanes)
      for (const schedule::Step& step : lane.steps)
        ZC_REQUIRE(step.codec == 0, ZC_UNSUPPORTED,
                   "rank %d: the schedule %s encodes messages: no codec can be had here", comm.rank(),
                   own.key.algorithm.c_str());
  const schedule::Verdict verdict = schedule::verify(own);
  ZC_REQUIRE(verdict.ok(), ZC_ARGUMENT, "rank %d: the schedule %s is wrong: %s", comm.rank(), own.key.algorithm.c_str(),
             verdict.text().c_str());
  return comm.programs.keep(text, schedule::make_program(own, static_cast<std::uint32_t>(comm.rank())),
                            verdict.canonical);
}

}  // namespace

void choose_schedule(const Comm& comm, Operation& operation, const ScheduleChoice& choice) {
  if (choice.algorithm == nullptr && choice.schedule == nullptr) return;
  const char* const name = collective_name(operation.call.collective);
  ZC_REQUIRE(choice.algorithm == nullptr || choice.schedule == nullptr, ZC_ARGUMENT,
             "rank %d: %s: an algorithm and a schedule are given", comm.rank(), name);
  const std::optional<schedule::Collective> collective = collective_of(operation.collective());
  ZC_REQUIRE(collective, ZC_UNSUPPORTED, "rank %d: %s has no schedules", comm.rank(), name);
  const auto ranks = static_cast<std::uint32_t>(comm.ranks());
  const std::uint32_t root = operation.call.root < 0 ? 0 : static_cast<std::uint32_t>(operation.call.root);
  std::string text;
  if (choice.schedule != nullptr) {
    const schedule::Key& key = choice.schedule->key;
    ZC_REQUIRE(key.collective == *collective && key.ranks == ranks && key.root == root, ZC_ARGUMENT,
               "rank %d: the schedule is for %s over %u ranks with root %u; the call is %s over %u ranks with root %u",
               comm.rank(), schedule::collective_name(key.collective), key.ranks, key.root, name, ranks, root);
    text = schedule::to_text(*choice.schedule);
  } else {
    text = format("%s %s %u", schedule::collective_name(*collective), choice.algorithm, root);
  }
  KeptProgram kept = comm.programs.find(text);
  if (kept.program == nullptr && choice.schedule != nullptr) {
    kept = take_own(comm, *choice.schedule, text);
  } else if (kept.program == nullptr) {
    const schedule::Algorithm& row = schedule::find_algorithm(*collective, choice.algorithm);
    const schedule::Schedule made = schedule::build(schedule::make_key(*collective, row.name, ranks, root));
    kept =
        comm.programs.keep(text, schedule::make_program(made, static_cast<std::uint32_t>(comm.rank())), row.canonical);
  }
  ZC_REQUIRE(kept.canonical || !choice.reproducible || !depends_on_order(operation), ZC_UNSUPPORTED,
             "rank %d: %s of %s by the schedule %s combines contributions in an order of its own, so its bits are not "
             "those of other schedules; reproducible = ZC_OFF allows it",
             comm.rank(), name, zc_dtype_name(operation.dtype()), kept.program->key().algorithm.c_str());
  check_passes(comm, operation, *kept.program);
  operation.call.schedule = hash_text(text);
  auto plan = std::make_shared<MovePlan>();
  plan->partition = partition_of(operation, comm.ranks(), kept.program->key());
  plan->program = std::move(kept.program);
  operation.plan = std::move(plan);
}

}  // namespace zerocomm::comm
