// Between two generations: norm, scale, update, publication.
#include "base/float_env.hpp"
#include "engine/engine.hpp"

#include <cstring>

namespace zerocomm::engine {

using zero::Step;
using zero::Verdict;

zc_status Engine::norm(zc_norm* norm) {
  {
    const std::lock_guard lock(mutex_);
    const Verdict verdict = publication_.norm();
    if (verdict.status != ZC_OK) return refuse(verdict);
  }
  zc_exact_sum mine{}, all{};
  for (std::size_t index = 0; index < layout_.uses.size(); ++index) {
    const shard::Use& use = layout_.uses[index];
    if (use.stored != index || use.bucket == shard::kNoIndex) continue;
    // Also in stage 0, where every rank has all gradients: each element is counted by the rank that would own it.
    const Part part = owned_part(use, rank_);
    if (part.count != 0)
      ZC_TRY(zc_exact_sum_add_squares(&mine, gradient_at(index, part.offset), part.count, ZC_DTYPE_F32));
  }
  const zc_coll_options options = control();
  ZC_TRY(zc_all_reduce(comm_, mine.words, all.words, ZC_EXACT_SUM_WORDS, ZC_DTYPE_I64, ZC_OP_SUM, &options));
  return zc_exact_sum_round(&all, norm);
}

zc_status Engine::scale(double factor) {
  {
    const std::lock_guard lock(mutex_);
    const Verdict verdict = publication_.norm();
    if (verdict.status != ZC_OK) return refuse(verdict);
  }
  const DefaultFloatEnv environment;  // whatever the caller's: subnormal gradients are scaled alike on all ranks
  const auto multiplier = static_cast<float>(factor);
  for (const zc_zero_piece& piece : pieces_)
    for (std::size_t i = 0; i < piece.count; ++i) piece.gradient[i] *= multiplier;
  return ZC_OK;
}

zc_status Engine::update_begin() {
  return change_generation([&] { return publication_.update_begin(held_units()); });
}

zc_status Engine::publish() {
  return change_generation([&] { return publication_.publish(); });
}

zc_status Engine::publish_unchanged() {
  return change_generation([&] { return publication_.publish_unchanged(held_units()); });
}

zc_status Engine::change_generation(FunctionRef<Verdict()> decide) {
  ZC_TRY(zc_comm_status(comm_));
  Verdict verdict;
  {
    const std::lock_guard lock(mutex_);
    verdict = decide();
  }
  if (verdict.status != ZC_OK) return refuse(verdict);
  for (const zero::Action& action : verdict.actions) ZC_TRY(carry_out(action));
  return ZC_OK;
}

zc_status Engine::carry_out(const zero::Action& action) {
  switch (action.step) {
    case Step::drain: {
      std::unique_lock lock(mutex_);
      landed_.wait(lock, [&] { return !fetcher_.any_fetching(); });
      return ZC_OK;
    }
    case Step::drop_cache: {
      if (plan_.full_parameters) return ZC_OK;
      const std::lock_guard lock(mutex_);
      const zero::Plan plan = fetcher_.drop_all();
      poison_dropped(plan);
      return plan.status == ZC_OK ? ZC_OK : fail(plan.status, "rank %d: %s", rank_, plan.text.c_str());
    }
    case Step::set_done:
      store_word(rank_, Words::done(), action.value + 1);
      return ZC_OK;
    case Step::wait_all_done:
      return wait_for_words(
          Words::done(), action.value + 1, kind_.gradients ? "zc_zero_update_begin" : "zc_fetcher_update_begin",
          [](std::uint64_t word) { return word; }, "is done with generations below");
    case Step::set_published:
      store_word(rank_, Words::published(),
                 zero::pack(zero::after_publish(zero::unpack(load_word(rank_, Words::published())), action.changed)));
      return ZC_OK;
    case Step::wait_all_published:
      ZC_TRY(wait_for_owners(action.value));
      return check_changes(action.value);
    case Step::pull_replicas:
      return pull_replicas();
  }
  return ZC_OK;
}

// Stages 1 and 2: brings what others own of the trained parameters into this rank's replica.
zc_status Engine::pull_replicas() {
  for (const shard::Block& block : layout_.blocks) {
    if (!layout_.buffers[block.buffer].trainable) continue;
    for (std::int32_t step = 1; step < ranks_; ++step)
      ZC_TRY(read_owned(block, (rank_ + step) % ranks_, own_parameter(block, 0)));
  }
  gather_bytes_ += publish_logical_bytes_;
  return ZC_OK;
}

zc_status Engine::cast() {
  {
    const std::lock_guard lock(mutex_);
    const Verdict verdict = publication_.cast();
    if (verdict.status != ZC_OK) return refuse(verdict);
  }
  for (const zc_zero_piece& piece : pieces_)
    if (piece.master != piece.parameter)
      ZC_TRY(zc_cast(piece.master, ZC_DTYPE_F32, piece.parameter, layout_.buffers[piece.buffer].dtype, piece.count));
  return ZC_OK;
}

}  // namespace zerocomm::engine
