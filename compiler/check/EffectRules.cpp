//===- EffectRules.cpp - what has an effect happens once ------------------===//
#include "compiler/check/EffectRules.h"

#include <algorithm>
#include <cstdint>

namespace ds::check {

uint64_t microbatchesOf(const proto::Plan &plan, const std::string &program) {
  uint64_t microbatches = 0;
  for (const proto::Program &one : plan.roles(0).programs())
    for (const proto::Call &call : one.calls())
      if (one.name() == program)
        microbatches = std::max<uint64_t>(microbatches, call.microbatch() + 1);
  return microbatches;
}

namespace {

/// Whether commands are counted that say they implement it.
bool isCounted(const proto::Plan &plan, const proto::ReferenceOp &op) {
  return op.op() == "train.update_average" ||
         (op.op() == "train.accumulate" && plan.variables(int(op.variables(0))).kind() != proto::Variable::GRADIENT);
}

} // namespace

void requireEffects(const proto::Plan &plan, const std::string &program, const std::vector<RankReplay> &replays) {
  const uint64_t microbatches = microbatchesOf(plan, program);
  const std::vector<std::string> functions = functionsOf(program);
  for (int i = 0; i < plan.reference().ops_size(); ++i) {
    const proto::ReferenceOp &op = plan.reference().ops(i);
    if (op.variables_size() == 0 || std::ranges::count(functions, op.function()) == 0 || !isCounted(plan, op))
      continue;
    uint64_t least = UINT64_MAX, most = 0;
    for (const RankReplay &replay : replays)
      if (const auto count = replay.effects().find(uint32_t(i)); count != replay.effects().end()) {
        least = std::min(least, count->second);
        most = std::max(most, count->second);
      }
    if (const uint64_t wrong = most == microbatches ? std::min(least, most) : most; wrong != microbatches)
      throw Refusal{"coverage", "program " + program + ": " + plan.variables(int(op.variables(0))).name() +
                                    (op.op() == "train.accumulate" ? " is summed " : " is averaged ") +
                                    std::to_string(wrong) + " times in " + std::to_string(microbatches) +
                                    " micro-batches"};
  }
}

void requireAveraged(RankMemory &memory, const std::vector<Effect> &effects, size_t index) {
  const Instance &instance = memory.instance(index);
  for (uint32_t reference : instance.command->reference()) {
    const proto::ReferenceOp &op = memory.plan().reference().ops(int(reference));
    if (op.op() != "train.update_average" || op.variables_size() == 0)
      continue;
    const uint32_t old = memory.values().variable(op.variables(0));
    if (std::ranges::none_of(effects, &Effect::writes)) // old and new have one number, so its end would not show it
      memory.refuse("meaning", index,
                    "is said to average " + memory.plan().variables(int(op.variables(0))).name() +
                        ", but writes nothing");
    for (const Effect &effect : effects)
      if (const uint32_t held = memory.valueIn(*effect.operand, instance.microbatch); effect.writes && held != old)
        memory.refuse("meaning", index,
                      "averages into " + memory.nameOf(effect.operand->buffer()) + ", which holds " +
                          memory.values().name(held) + ", not the old " + memory.values().name(old));
  }
}

} // namespace ds::check
