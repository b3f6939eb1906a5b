//===- Advice.cpp - what takes a step's memory and time, and what would help ===//
#include "compiler/report/Advice.h"

#include "compiler/report/Facts.h"
#include "compiler/report/Fit.h"
#include "compiler/report/PeakMemory.h"
#include "compiler/report/PipelineStages.h"
#include "compiler/report/Sharing.h"
#include "compiler/report/Transfers.h"
#include "compiler/report/WireBytes.h"
#include "runtime/plan/plan.pb.h"
#include "runtime/plan/run/CommandWork.h"
#include "runtime/plan/run/Flops.h"

#include <algorithm>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ds::report {
namespace {

using plan::proto::Buffer;
using plan::proto::Plan;
using plan::proto::Role;

/// What the resolved configuration says at a path; null where it says nothing.
nlohmann::json resolved(const Plan &plan, const char *path) {
  const auto config = nlohmann::json::parse(plan.config_json(), nullptr, /*allow_exceptions=*/false);
  const auto place = nlohmann::json::json_pointer(path);
  return config.is_object() && config.contains(place) ? config[place] : nlohmann::json();
}

/// The ZeRO stage whose layout a plan has: with one micro-batch a step, stage 1 is laid out as stage 2.
int64_t zeroStage(const Plan &plan) {
  const nlohmann::json asked = resolved(plan, "/zero_optimization/stage");
  const int64_t stage = asked.is_number_integer() ? asked.get<int64_t>() : 0;
  return stage == 1 && plan.training().accumulation_steps() == 1 ? 2 : stage;
}

/// Whether less could be kept for the backward: the user has said what is.
bool couldRecomputeMore(const Plan &plan) {
  const nlohmann::json asked = resolved(plan, "/deepstatic/recompute");
  return !asked.is_null() && asked != "auto" && asked != "full";
}

/// The category with the most bytes when most are alive, and these bytes.
std::pair<Buffer::Category, uint64_t> largest(const Role &role, std::string_view space) {
  const SpaceMemory memory = measure(role, space);
  const auto most = std::ranges::max_element(memory.atPeak);
  return {Buffer::Category(most - memory.atPeak.begin()), *most};
}

std::string holder(Buffer::Category category) {
  switch (category) {
  case Buffer::OPTIMIZER:
    return "the optimizer's moments hold the most";
  case Buffer::WORKSPACE:
    return "workspaces of kernels hold the most";
  case Buffer::COMMUNICATION:
    return "buffers of communication hold the most";
  default:
    return std::string(categoryName(category)) + " hold the most";
  }
}

/// What makes less of a category, and the setting that does, if one does.
struct Remedy {
  std::string text, setting{};
};

Remedy remedy(const Plan &plan, Buffer::Category category) {
  const auto shareOut = [&](int64_t wanted) -> Remedy {
    const std::string stage = std::to_string(wanted), words = "zero_optimization.stage " + stage;
    const std::string setting = zeroStage(plan) < wanted ? "zero_optimization.stage=" + stage : "";
    if (worldSize(plan).data == 1)
      return {(worldSize(plan).pipe > 1 ? "several data-parallel ranks with " : "several ranks with ") + words +
                  " shard them",
              setting};
    return {setting.empty() ? "more ranks hold less each" : words + " shards them over the ranks", setting};
  };
  switch (category) {
  case Buffer::OPTIMIZER:
    return shareOut(1);
  case Buffer::GRADIENTS:
    return shareOut(2);
  case Buffer::WEIGHTS:
    return shareOut(3);
  default:
    if (couldRecomputeMore(plan))
      return {"deepstatic.recompute \"auto\" keeps less where it has to", "deepstatic.recompute=auto"};
    return {plan.training().micro_batch_size() > 1
                ? "a smaller train_micro_batch_size_per_gpu with more gradient_accumulation_steps needs less"
                : "a shorter sequence needs less"};
  }
}

/// Of all roles: matrix products of a step, and those done again.
std::pair<uint64_t, uint64_t> products(const Plan &plan) {
  uint64_t work = 0, again = 0;
  for (const Role &role : plan.roles()) {
    work += plan::matmulFlopsPerStep(plan, role);
    again += plan::recomputeFlopsPerStep(plan, role);
  }
  return {work, again};
}

std::string recomputeAdvice(const Plan &plan) {
  const auto [work, again] = products(plan);
  if (again == 0)
    return "";
  const bool chosen = isRecomputeAuto(plan);
  return percentText(double(again) / double(std::max<uint64_t>(work, 1))) +
         " more matrix products are computed, to keep less memory: " +
         (chosen ? "more device memory, or a smaller micro-batch, saves them"
                 : "deepstatic.recompute \"auto\" computes again only what has to be");
}

std::string pipelineAdvice(const Plan &plan) {
  const double bubble = plan.pipeline().bubble_fraction();
  if (!hasStages(plan) || bubble < 0.01)
    return "";
  return "ranks of the pipeline are idle for " + percentText(bubble) +
         " of a step: more gradient_accumulation_steps make that less" +
         (plan.pipeline().schedule() == "zb-h1" ? "" : ", and so does deepstatic.pipeline.schedule \"zb-h1\"");
}

/// Of the role whose compute waits longest for copies between memories.
std::string transferAdvice(const Plan &plan) {
  double most = 0;
  for (const Role &role : plan.roles())
    if (const auto times = transferTimes(plan, role); times && times->step > 0)
      most = std::max(most, times->exposed() / times->step);
  return most < 0.01 ? ""
                     : "compute waits for copies between memories for " + percentText(most) +
                           " of a step: more device memory, or larger micro-batches, hide them";
}

/// Of stage 2 with several micro-batches a step, each of which is reduced: what stage 1 costs, which holds gradients
/// whole and reduces them once, and what it saves, where every rank has room for it.
std::string holdAdvice(const Plan &plan) {
  const uint64_t microbatches = plan.training().accumulation_steps(), ranks = worldSize(plan).data;
  const nlohmann::json optimizer = resolved(plan, "/zero_optimization/offload_optimizer/device");
  if (zeroStage(plan) != 2 || microbatches < 2 || ranks < 2 || (optimizer.is_string() && optimizer != "none"))
    return "";
  uint64_t more = 0, sent = 0;
  for (const FitSpace &space : fitSpaces(plan)) {
    if (space.space != "device")
      continue;
    const StateFacts gradients = stateFacts(plan, *space.role, Buffer::GRADIENTS);
    const uint64_t others = (gradients.heldBytes + gradients.paddingBytes) * (ranks - 1);
    if (space.room == 0 || space.needed + others > space.room)
      return "";
    more = std::max(more, others);
    sent = std::max(sent, wireBytesPerStep(plan, *space.role, space.role->ranks(0)).reduceScatter);
  }
  return "zero_optimization.stage 1 holds gradients whole and reduces them once a step: it needs " + bytesText(more) +
         " more, for which there is room, and sends " + bytesText(sent / microbatches) + " of them instead of " +
         bytesText(sent) + ", added in another order";
}

/// Of one rank, alone.
double stepSeconds(const Plan &plan, const Role &role) {
  const auto times = transferTimes(plan, role);
  return times ? times->step : computeSeconds(plan, role);
}

} // namespace

bool isRecomputeAuto(const Plan &plan) { return resolved(plan, "/deepstatic/recompute") == "auto"; }

std::string memoryAdvice(const Plan &plan, const Role &role, std::string_view space) {
  const auto [category, bytes] = largest(role, space);
  return holder(category) + ", " + bytesText(bytes) + ": " + remedy(plan, category).text;
}

std::string memoryRemedy(const Plan &plan, const Role &role, std::string_view space) {
  const Buffer::Category category = largest(role, space).first;
  return holder(category) + ": " + remedy(plan, category).text;
}

std::string memorySetting(const Plan &plan, const Role &role, std::string_view space) {
  return remedy(plan, largest(role, space).first).setting;
}

std::string stepText(const Plan &plan) {
  if (!unknownLink(plan).empty())
    return "";
  double longest = 0;
  for (const Role &role : plan.roles())
    longest = std::max(longest, stepSeconds(plan, role));
  if (hasStages(plan))
    longest /= std::max(0.01, 1 - plan.pipeline().bubble_fraction());
  if (longest == 0)
    return "";
  return "about " + secondsText(longest) + " by the cost model, " +
         (plan::ratesOf(plan).known() ? "with the rates of " + plan.machine().name() + "'s file; nothing was measured"
                                      : "100 GFLOP/s and 10 GB/s, which is no measure of a machine");
}

std::string recomputeShare(const Plan &plan) {
  const auto [work, again] = products(plan);
  return again == 0 ? "none" : percentText(double(again) / double(std::max<uint64_t>(work, 1))) + " more";
}

std::vector<std::string> adviceOf(const Plan &plan) {
  std::vector<std::string> advice;
  const Role *fullest = nullptr;
  uint64_t most = 0;
  for (const Role &role : plan.roles())
    if (const uint64_t peak = measure(role, "device").peakLiveBytes; peak > most) {
      most = peak;
      fullest = &role;
    }
  if (fullest)
    advice.push_back("less memory: " + memoryAdvice(plan, *fullest, "device"));
  for (const std::string &sentence :
       {holdAdvice(plan), recomputeAdvice(plan), pipelineAdvice(plan), transferAdvice(plan)})
    if (!sentence.empty())
      advice.push_back("less time: " + sentence);
  return advice;
}

} // namespace ds::report
