//===- JsonReport.cpp - the report that scripts read ----------------------===//
//
// {"format": 1, "model", "ranks", "world", "numerics", "own_of_data_ranks" (variables of which it does not speak),
//  "stale", "compiler", "training",
//  "machine": {"name", "device", "isa" ("": any), "reserve_bytes" (of a rank's device, outside of arenas)},
//  "captured": names of the programs that a device may record once and launch again,
//  "compiled": {"kernels" that the plan carries, "commands" of all roles' routines that run them, "bytes" of their
//  text}, "ranks_detail": [{"rank", "role", "coords", "same_as" (above 16 ranks: [first, last] pairs of ranks that
//  equal it),
//    "memory": {"device" | "host" | "nvme": {
//        "arena_bytes"      what is allocated,
//        "peak_live_bytes"  the sum of bytes alive at the worst instant of any program,
//        "weights", "gradients", "optimizer", "activations", "workspace", "communication", "inputs", "constants"
//                           alive at that instant, without padding,
//        "padding"          what is left of arena_bytes: alignment, gaps that no offset could close, and
//        "bucket_padding"   what of buckets belongs to no variable,
//        "lost"             arena_bytes that hold nothing live at the peak: "alignment" of live buffers,
//                           "message_slots" that a message may fill or leave, "idle_slots" of micro-batches not under
//                           way, "gaps" that other times need,
//        "phases"           most bytes alive while "init", "load", "save" (what is resident), "step", "eval" run}},
//    "zero": {"weights" | "gradients" | "optimizer": {"whole_bytes", "rank_bytes", "rank_padding"},
//             "buckets": [{"name", "elements", "rank_bytes", "held", "rank_padding", "members"}]},
//    "wire_bytes_per_step", "wire_bytes_by_axes" (where ranks send along several), "flops_per_step" (matrix products),
//    "recompute_flops_per_step", "commands_of_step": [{"kernel" (or "copy", "fill", ...), "commands", "flops", "bytes",
//    and where the machine has
//        rates "seconds" (by the cost model, one after another)}],
//    "transfer_bytes_per_step": {"out" (of device memory), "back"}, where there are any,
//    "movement": where anything moves or would have to, between device and host memory: {"room_bytes" (of device
//        memory), "moved_bytes", "least_bytes" (of any schedule of the same commands), "forced_bytes" (of these,
//        whatever the room), and where the link is known "least_exposed_seconds"},
//    "transfer_times": of a step on the simulated clock, where there are any and the machine's links are
//    known:
//        {"alone_seconds" (all, one after another), "compute_seconds" (commands that compute, one after another),
//         "step_seconds", "step_seconds_without" (if transfers took no time), "exposed_seconds" (the difference),
//         "hidden" (1 - exposed / alone),
//         "transfers": [{"name", "direction": "out" | "back", "microbatch", "bytes", "start_seconds" (of the step),
//                        "end_seconds", "latest_end_seconds" (with which the step is no longer),
//                        "bytes_per_second"}]}}],
//  "recompute": {"level" (as deepstatic.recompute takes it; 0 for whole layers, too), "levels", "layers" (0: by rules,
//                or none), "layers_again"},
//  "pipeline": {"schedule", "stages" (ranks along the pipe), "microbatches", "bubble_fraction", and where there
//  are several:
//               "chunks" (stages of a rank), "imbalance" (the slowest stage's time, of the mean),
//               "stages_detail": [{"first_op", "last_op", "forward_seconds", "backward_seconds", "weight_seconds" (of a
//                                  micro-batch, by the cost model), "bytes_sent", "sent", "microbatches_in_flight"}]},
//  "parameters", "config"}
//
//===----------------------------------------------------------------------===//
#include "compiler/config/Hjson.h"
#include "compiler/report/Facts.h"
#include "compiler/report/Formats.h"
#include "compiler/report/Fragmentation.h"
#include "compiler/report/PeakMemory.h"
#include "compiler/report/PipelineStages.h"
#include "compiler/report/Sharing.h"
#include "compiler/report/Transfers.h"
#include "compiler/report/WireBytes.h"
#include "compiler/report/movement/MovedBytes.h"
#include "runtime/plan/plan.pb.h"
#include "runtime/plan/run/CommandWork.h"
#include "runtime/plan/run/Flops.h"
#include "runtime/plan/world/Mesh.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <nlohmann/json.hpp>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ds::report {
namespace {

using json = nlohmann::ordered_json;
using plan::proto::Buffer;
using plan::proto::Plan;
using plan::proto::Role;

constexpr uint64_t maxRanksListed = 16; // above, one of each role

json memoryJson(const Plan &plan, const Role &role, std::string_view space) {
  SpaceMemory memory = measure(role, space);
  uint64_t bucketPadding = 0;
  for (const plan::LiveBuffer &live : memory.alive) {
    const uint64_t padding = paddingOf(plan, role.buffers(live.buffer));
    memory.atPeak[size_t(role.buffers(live.buffer).category())] -= padding;
    bucketPadding += padding;
  }
  json result = {{"arena_bytes", memory.arenaBytes}, {"peak_live_bytes", memory.peakLiveBytes}};
  for (int category = Buffer::WEIGHTS; category <= Buffer::CONSTANTS; ++category)
    result[std::string(categoryName(Buffer::Category(category)))] = memory.atPeak[size_t(category)];
  result["padding"] = int64_t(memory.arenaBytes) - int64_t(memory.peakLiveBytes) + int64_t(bucketPadding);
  result["bucket_padding"] = bucketPadding;
  const Fragmentation fragmentation = fragmentationAtPeak(plan, role, space, memory);
  result["lost"] = {{"alignment", fragmentation.alignment},
                    {"message_slots", fragmentation.messageSlots},
                    {"idle_slots", fragmentation.idleSlots},
                    {"gaps", fragmentation.gaps}};
  for (const Phase &phase : phasesOf(plan, role, memory))
    result["phases"][phase.name] = phase.liveBytes;
  return result;
}

/// The ZeRO table: each kind of state once, and what a rank holds of it; the buckets.
json zeroJson(const Plan &plan, const Role &role) {
  json result;
  for (Buffer::Category category : {Buffer::WEIGHTS, Buffer::GRADIENTS, Buffer::OPTIMIZER}) {
    const StateFacts facts = stateFacts(plan, role, category);
    result[std::string(categoryName(category))] = {
        {"whole_bytes", facts.wholeBytes}, {"rank_bytes", facts.heldBytes}, {"rank_padding", facts.paddingBytes}};
  }
  result["buckets"] = json::array();
  for (const BucketFacts &facts : bucketFacts(plan, role)) {
    json members = json::array();
    for (const plan::proto::BucketMember &member : facts.bucket->members())
      members.push_back(plan.variables(int(member.variable())).name());
    json one = {{"name", facts.bucket->name()},       {"elements", facts.bucket->elements()},
                {"rank_bytes", facts.heldBytes},      {"held", facts.heldBytes == facts.wholeBytes ? "whole" : "slice"},
                {"rank_padding", facts.paddingBytes}, {"members", members}};
    if (facts.oversized)
      one["note"] = "larger than the bucket size: a bucket of its own";
    result["buckets"].push_back(std::move(one));
  }
  return result;
}

json transferTimesJson(const TransferTimes &times) {
  static constexpr std::array directions{"out", "back", "write", "read"};
  json transfers = json::array();
  for (const TimedTransfer &one : times.transfers)
    transfers.push_back({{"name", one.moved.name},
                         {"direction", directions[one.moved.direction]},
                         {"microbatch", one.microbatch},
                         {"bytes", one.moved.bytes},
                         {"start_seconds", one.start},
                         {"end_seconds", one.end},
                         {"latest_end_seconds", one.latestEnd},
                         {"bytes_per_second", one.bytesPerSecond()}});
  return {{"alone_seconds", times.alone},
          {"compute_seconds", times.compute},
          {"step_seconds", times.step},
          {"step_seconds_without", times.stepWithout},
          {"exposed_seconds", times.exposed()},
          {"hidden", times.hidden()},
          {"transfers", transfers}};
}

json commandsJson(const Plan &plan, const Role &role) {
  json result = json::array();
  for (const plan::CommandTotals &one : plan::commandsOfStep(plan, role)) {
    result.push_back({{"kernel", one.name}, {"commands", one.commands}, {"flops", one.flops}, {"bytes", one.bytes}});
    if (plan::ratesOf(plan).known())
      result.back()["seconds"] = one.seconds;
  }
  return result;
}

/// What all ranks of a role have in common.
json roleJson(const Plan &plan, const Role &role) {
  json result = {{"memory",
                  {{"device", memoryJson(plan, role, "device")},
                   {"host", memoryJson(plan, role, "host")},
                   {"nvme", memoryJson(plan, role, "nvme")}}},
                 {"zero", zeroJson(plan, role)},
                 {"flops_per_step", plan::matmulFlopsPerStep(plan, role)},
                 {"recompute_flops_per_step", plan::recomputeFlopsPerStep(plan, role)},
                 {"commands_of_step", commandsJson(plan, role)}};
  if (const auto moved = movedBytes(plan, role))
    result["movement"] = movementJson(plan, role, *moved);
  if (const auto times = transferTimes(plan, role))
    result["transfer_times"] = transferTimesJson(*times);
  return result;
}

json rankJson(const Plan &plan, uint64_t rank, const Role &role, const json &common) {
  json result = {{"rank", rank}, {"role", role.name()}};
  for (const char *axis : {"data", "pipe", "tensor"})
    result["coords"][axis] = plan::axisCoordinate(plan.world(), axis, rank);
  result.update(common);
  const WireBytes wire = wireBytesPerStep(plan, role, rank);
  result["wire_bytes_per_step"] = {{"all_gather", wire.allGather},
                                   {"reduce_scatter", wire.reduceScatter},
                                   {"all_reduce", wire.allReduce},
                                   {"send", wire.send},
                                   {"recv", wire.receive}};
  if (wire.broadcast > 0)
    result["wire_bytes_per_step"]["broadcast"] = wire.broadcast;
  if (wire.allToAll > 0)
    result["wire_bytes_per_step"]["all_to_all"] = wire.allToAll;
  if (wire.byAxes.size() > 1)
    result["wire_bytes_by_axes"] = wire.byAxes;
  if (const TransferBytes moved = transferBytesPerStep(role); moved.sum() > 0)
    result["transfer_bytes_per_step"] = {
        {"out", moved.out}, {"back", moved.back}, {"write", moved.written}, {"read", moved.read}};
  return result;
}

json ranksJson(const Plan &plan, bool allRanks) {
  const uint64_t ranks = worldSize(plan).ranks();
  std::vector<json> common;
  for (const Role &role : plan.roles())
    common.push_back(roleJson(plan, role));
  json result = json::array();
  if (allRanks || ranks <= maxRanksListed) {
    for (uint64_t rank = 0; rank < ranks; ++rank)
      if (const int role = roleOf(plan, rank); role >= 0)
        result.push_back(rankJson(plan, rank, plan.roles(role), common[size_t(role)]));
    return result;
  }
  for (int i = 0; i < plan.roles_size(); ++i) {
    const Role &role = plan.roles(i);
    if (role.ranks_size() < 2)
      continue;
    json one = rankJson(plan, role.ranks(0), role, common[size_t(i)]);
    for (int k = 0; k + 1 < role.ranks_size(); k += 2)
      one["same_as"].push_back({role.ranks(k), role.ranks(k + 1)});
    result.push_back(std::move(one));
  }
  return result;
}

json parametersJson(const Plan &plan) {
  json result = json::array();
  const std::vector<std::vector<uint64_t>> stages = stagesOfVariables(plan);
  for (int i = 0; i < plan.variables_size(); ++i) {
    const plan::proto::Variable &variable = plan.variables(i);
    if (variable.kind() != plan::proto::Variable::PARAMETER)
      continue;
    json one = {{"name", variable.name()},
                {"shape", std::vector<int64_t>(variable.shape().begin(), variable.shape().end())},
                {"dtype", dtypeName(variable.dtype())},
                {"stages", stages[size_t(i)]},
                {"bytes", bytesOf(variable)},
                {"trainable", variable.trainable()}};
    if (variable.aliases_size() > 0)
      one["aliases"] = std::vector<std::string>(variable.aliases().begin(), variable.aliases().end());
    result.push_back(std::move(one));
  }
  return result;
}

json stageJson(const plan::proto::Stage &stage) {
  json sent = json::array();
  for (const plan::proto::SentValue &value : stage.sent())
    sent.push_back({{"name", value.name()}, {"bytes", value.bytes()}, {"to_stage", value.to_stage()}});
  return {{"first_op", stage.first_op()},
          {"last_op", stage.last_op()},
          {"forward_seconds", stage.forward_seconds()},
          {"backward_seconds", stage.backward_seconds()},
          {"weight_seconds", stage.weight_seconds()},
          {"bytes_sent", bytesSent(stage)},
          {"sent", sent},
          {"microbatches_in_flight", stage.microbatches_in_flight()}};
}

json pipelineJson(const Plan &plan) {
  const plan::proto::Pipeline &pipeline = plan.pipeline();
  json result = {{"schedule", hasStages(plan) ? pipeline.schedule() : "none"},
                 {"stages", worldSize(plan).pipe},
                 {"microbatches", plan.training().accumulation_steps()},
                 {"bubble_fraction", pipeline.bubble_fraction()}};
  if (!hasStages(plan))
    return result;
  result["chunks"] = pipeline.chunks();
  result["imbalance"] = imbalance(pipeline);
  for (const plan::proto::Stage &stage : pipeline.stages())
    result["stages_detail"].push_back(stageJson(stage));
  return result;
}

/// A value of the configuration, which the plan keeps as a line of JSON; the line itself where it is none.
json valueJson(const std::string &line) {
  try {
    return json::parse(config::toJson(config::parseHjsonValue(line, "value"))); // bounds the nesting
  } catch (const std::exception &) {
    return line;
  }
}

json configJson(const Plan &plan) {
  json result = json::array();
  for (const plan::proto::ConfigAnswer &answer : plan.config())
    result.push_back(answerJson(answer));
  return result;
}

json compiled(const Plan &plan) {
  const CompiledKernels all = compiledKernels(plan);
  return {{"kernels", all.kernels}, {"commands", all.commands}, {"bytes", all.bytes}};
}

/// All roles agree on them.
json capturedPrograms(const Plan &plan) {
  json names = json::array();
  for (int i = 0; plan.roles_size() > 0 && i < plan.roles(0).programs_size(); ++i)
    if (plan.roles(0).programs(i).captured())
      names.push_back(plan.roles(0).programs(i).name());
  return names;
}

} // namespace

json movementJson(const Plan &plan, const Role &role, const MovedBytes &moved) {
  json result = {{"room_bytes", moved.room},
                 {"moved_bytes", moved.moved},
                 {"least_bytes", moved.least},
                 {"forced_bytes", moved.forced}};
  if (linkOf(plan, Transfer::Out))
    result["least_exposed_seconds"] = leastExposed(plan, role, moved);
  return result;
}

json answerJson(const plan::proto::ConfigAnswer &answer) {
  return {{"path", answer.path()},
          {"value", valueJson(answer.value_json())},
          {"status", answer.status()},
          {"note", answer.note()}};
}

std::string jsonReport(const Plan &plan, bool allRanks) {
  const WorldSize world = worldSize(plan);
  const json result = {
      {"format", 1},
      {"model", plan.model()},
      {"ranks", world.ranks()},
      {"world", {{"data", world.data}, {"pipe", world.pipe}, {"tensor", world.tensor}}},
      {"numerics", plan.numerics()},
      {"own_of_data_ranks", ownOfDataRanks(plan)},
      {"stale", plan.stale()},
      {"compiler", plan.compiler_revision()},
      {"machine",
       {{"name", plan.machine().name()},
        {"device", plan.machine().device()},
        {"isa", plan.machine().isa()},
        {"reserve_bytes", plan.machine().reserve()}}},
      {"captured", capturedPrograms(plan)},
      {"compiled", compiled(plan)},
      {"training",
       {{"train_batch_size", plan.training().train_batch_size()},
        {"micro_batch_size", plan.training().micro_batch_size()},
        {"accumulation_steps", plan.training().accumulation_steps()}}},
      {"recompute",
       {{"level", plan.recompute().level()},
        {"levels", plan.recompute().levels()},
        {"layers", plan.recompute().layers()},
        {"layers_again", plan.recompute().layers_again()}}},
      {"ranks_detail", ranksJson(plan, allRanks)},
      {"pipeline", pipelineJson(plan)},
      {"parameters", parametersJson(plan)},
      {"config", configJson(plan)},
  };
  return result.dump(1, ' ', false, json::error_handler_t::replace) + "\n";
}

} // namespace ds::report
