//===- RankReplay.cpp - one role's run of a program, followed byte by byte --===//
#include "compiler/check/RankReplay.h"

#include "compiler/check/AccessRules.h"
#include "compiler/check/Distribution.h"
#include "compiler/check/EndRules.h"
#include "compiler/check/GradientRules.h"
#include "compiler/check/LifeRules.h"
#include "compiler/check/MeaningRules.h"
#include "compiler/check/MetricRules.h"
#include "compiler/check/SliceRules.h"
#include "compiler/check/WrittenValues.h"

#include <vector>

namespace ds::check {

void RankReplay::execute(size_t index) {
  const Instance &instance = memory_.instance(index);
  const std::vector<Effect> &effects = memory_.context.schedule.effects[index];
  if (isWhole())
    for (const Effect &effect : effects)
      requireAlive(memory_, *effect.operand, index);
  const bool moves = instance.command->has_copy() || instance.command->has_send(); // bytes as they are
  std::vector<Contents> found(effects.size()); // before anything is overwritten: an operand may be read and written
  for (size_t e = 0; e < effects.size(); ++e)
    if (effects[e].reads) {
      read(memory_, *effects[e].operand, index);
      found[e] = moves ? memory_.ownContentsOf(*effects[e].operand, instance.microbatch)
                       : memory_.contentsOf(*effects[e].operand, instance.microbatch);
    }
  memory_.byOne = false;
  requireNoOverlap(memory_, effects, index);
  requireGathered(memory_, effects, index);
  const std::vector<Meaning::Result> results = requireMeaning(memory_, effects, found, index);
  if (instance.command->has_send())
    memory_.context.messages.sent[{memory_.context.index, index}] = found;
  std::vector<Contents> written = writtenBy(memory_, effects, found, results, index);
  distribute(memory_, found, written, index);
  for (size_t e = 0; e < effects.size(); ++e)
    if (effects[e].writes || effects[e].scratch)
      write(memory_, *effects[e].operand, written[e], index);
  forgetPartialSums(memory_, index);
  countUnknown(written, index);
}

void RankReplay::countUnknown(const std::vector<Contents> &written, size_t index) {
  uint64_t bytes = 0;
  for (const Contents &contents : written)
    for (const OperandSegment &segment : contents.segments)
      bytes += segment.value == Values::unknown ? segment.end - segment.begin : 0;
  if (bytes > 0 && isWhole())
    memory_.context.meaning.addUnknown(*memory_.instance(index).command, bytes);
}

void RankReplay::finish() {
  requireMetrics(memory_);
  requireEnds(memory_);
  if (!isWhole())
    return;
  for (size_t i = 0; i < memory_.timeline().instances.size(); ++i)
    for (const Effect &effect : memory_.context.schedule.effects[i])
      requireOrdered(memory_, *effect.operand, i);
}

} // namespace ds::check
