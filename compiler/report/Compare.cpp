//===- Compare.cpp - what two plans decide otherwise ----------------------===//
#include "compiler/report/Compare.h"

#include "compiler/report/Facts.h"
#include "compiler/report/PeakMemory.h"
#include "compiler/report/PipelineStages.h"
#include "compiler/report/WireBytes.h"
#include "core/Error.h"
#include "runtime/plan/plan.pb.h"
#include "runtime/plan/world/Mesh.h"
#include "runtime/plan/world/Placement.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

namespace ds::report {
namespace {

using plan::proto::Buffer;
using plan::proto::Plan;
using plan::proto::Role;
using plan::proto::Variable;

/// Facts under their names, in an order of their own; what only one plan has is "none" in the other.
using Facts = std::vector<std::pair<std::string, std::string>>;

void compareFacts(const std::string &section, const Facts &before, const Facts &after, std::vector<Change> &changes) {
  const std::map<std::string, std::string> old(before.begin(), before.end()), now(after.begin(), after.end());
  for (const auto &[what, value] : before)
    if (const auto other = now.find(what); other == now.end() || other->second != value)
      changes.push_back({section, what, value, other == now.end() ? "none" : other->second});
  for (const auto &[what, value] : after)
    if (!old.contains(what))
      changes.push_back({section, what, "none", value});
}

//===-- whether they can be compared ------------------------------------------===//

Facts parameters(const Plan &plan) {
  Facts facts;
  for (const Variable &variable : plan.variables())
    if (variable.kind() == Variable::PARAMETER)
      facts.emplace_back(variable.name(), std::string(dtypeName(variable.dtype())) + " " + shapeText(variable.shape()));
  return facts;
}

void requireComparable(const Plan &a, const Plan &b) {
  if (a.format_version() != b.format_version())
    throw Error("the plans have format versions " + std::to_string(a.format_version()) + " and " +
                std::to_string(b.format_version()) +
                ", and only plans of one version can be compared; compile both again");
  const auto refuse = [&](const std::string &why) {
    throw Error("the plans are of different models, " + a.model() + " and " + b.model() + ": " + why +
                "; ds-opt diff compares plans of one model");
  };
  std::vector<Change> changes;
  compareFacts("", parameters(a), parameters(b), changes);
  if (!changes.empty())
    refuse("parameter " + changes[0].what + " is " + changes[0].before + " in the first and " + changes[0].after +
           " in the second");
  if (a.model() != b.model())
    refuse("their parameters are the same, their names are not");
}

//===-- facts -----------------------------------------------------------------===//

Facts rateFacts(const plan::proto::Rates &rates) {
  return {{"rate of memory", countText(rates.bytes_per_second()) + "B/s"},
          {"time of a command", secondsText(rates.command_seconds())},
          {"rate of float32", countText(rates.float32_flops()) + "FLOP/s"},
          {"rate of tf32", countText(rates.tf32_flops()) + "FLOP/s"},
          {"rate of bfloat16", countText(rates.bfloat16_flops()) + "FLOP/s"},
          {"rate of fp8", countText(rates.fp8_flops()) + "FLOP/s"},
          {"rate of attention", countText(rates.attention_flops()) + "FLOP/s"},
          {"multiprocessors", grouped(rates.multiprocessors())}};
}

Facts worldFacts(const Plan &plan) {
  const WorldSize world = worldSize(plan);
  Facts facts = {{"compiler", plan.compiler_revision()},
                 {"machine", plan.machine().name() + " (" + plan.machine().device() + ")"},
                 {"threads", grouped(plan.machine().threads())},
                 {"instructions", plan.machine().isa()},
                 {"reserve", grouped(plan.machine().reserve())},
                 {"device memory", grouped(plan.machine().device_memory())},
                 {"host memory", grouped(plan.machine().host_memory())},
                 {"ranks", grouped(world.ranks())},
                 {"pipe ranks", grouped(world.pipe)},
                 {"data ranks", grouped(world.data)},
                 {"expert ranks", grouped(world.expert)},
                 {"tensor ranks", grouped(world.tensor)}};
  for (const plan::proto::Link &link : plan.machine().links())
    facts.emplace_back("link " + link.between(),
                       countText(link.bytes_per_second()) + "B/s after " + secondsText(link.latency_seconds()));
  if (plan.machine().has_rates())
    for (const auto &[name, value] : rateFacts(plan.machine().rates()))
      facts.emplace_back(name, value);
  facts.emplace_back("micro-batch size", grouped(plan.training().micro_batch_size()));
  facts.emplace_back("accumulation steps", grouped(plan.training().accumulation_steps()));
  facts.emplace_back("train batch size", grouped(plan.training().train_batch_size()));
  for (const plan::proto::Program &program : plan.roles(0).programs()) // all roles agree
    facts.emplace_back("program " + program.name(), program.captured() ? "captured" : "command by command");
  if (const CompiledKernels compiled = compiledKernels(plan); compiled.kernels > 0)
    facts.emplace_back("compiled kernels", grouped(compiled.kernels) + " in " + grouped(compiled.bytes) + " bytes");
  if (plan.has_tuning())
    facts.emplace_back("tuned products", grouped(tunedCommands(plan)) + " on " + plan.tuning().gpu());
  return facts;
}

/// The resolved configuration, every key by its path.
Facts configFacts(const Plan &plan) {
  const auto config = nlohmann::json::parse(plan.config_json(), nullptr, /*allow_exceptions=*/false);
  if (!config.is_object())
    return {{"the resolved configuration", plan.config_json()}};
  Facts facts;
  const nlohmann::json flat = config.flatten();
  for (const auto &[pointer, value] : flat.items()) {
    std::string path = pointer.substr(1);
    for (char &letter : path)
      letter = letter == '/' ? '.' : letter;
    facts.emplace_back(path, value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
  }
  return facts;
}

/// "whole on every rank", "slices of bucket zero.0 over 4 ranks", "100 of 200 elements on every rank".
std::string holding(const Plan &plan, const Buffer &buffer) {
  const uint64_t kept = plan::heldElements(plan, buffer);
  if (buffer.has_bucket()) {
    const plan::proto::Bucket &bucket = plan.buckets(int(buffer.bucket()));
    return kept == bucket.elements()
               ? "whole in bucket " + bucket.name() + " on every rank"
               : "slices of bucket " + bucket.name() + " over " + plural(bucket.elements() / kept, "rank");
  }
  const uint64_t count = plan::elementsOf(plan.variables(int(buffer.variable())));
  return kept == count ? "whole on every rank" : grouped(kept) + " of " + grouped(count) + " elements on every rank";
}

Facts ownershipFacts(const Plan &plan) {
  std::map<std::string, std::string> held;
  for (const Role &role : plan.roles()) {
    const std::string prefix = plan.roles_size() > 1 ? "role " + role.name() + ": " : "";
    const auto add = [&](uint32_t variable, const Buffer &buffer) {
      std::string &text = held[prefix + plan.variables(int(variable)).name()];
      text += (text.empty() ? "" : "; ") + holding(plan, buffer);
    };
    for (const Buffer &buffer : role.buffers()) {
      if (buffer.has_variable())
        add(buffer.variable(), buffer);
      if (buffer.has_bucket())
        for (const plan::proto::BucketMember &member : plan.buckets(int(buffer.bucket())).members())
          add(member.variable(), buffer);
    }
  }
  return {held.begin(), held.end()};
}

Facts memoryFacts(const Plan &plan) {
  Facts facts;
  for (const Role &role : plan.roles())
    for (const char *space : {"device", "host", "nvme"}) {
      const SpaceMemory memory = measure(role, space);
      const std::string place = "role " + role.name() + ", " + space + ": ";
      const auto add = [&](const std::string &what, uint64_t bytes) {
        facts.emplace_back(place + what, grouped(bytes));
      };
      add("arena", memory.arenaBytes);
      add("live in init, load, save", memory.residentBytes);
      add("live in step", memory.programPeak(role, "step"));
      add("live in eval", memory.programPeak(role, "evaluate"));
      for (int category = Buffer::WEIGHTS; category <= Buffer::CONSTANTS; ++category)
        add(std::string(categoryName(Buffer::Category(category))) + " at the peak", memory.atPeak[size_t(category)]);
    }
  return facts;
}

Facts wireFacts(const Plan &plan) {
  Facts facts;
  for (const Role &role : plan.roles()) {
    if (role.ranks_size() == 0)
      continue;
    const WireBytes wire = wireBytesPerStep(plan, role, role.ranks(0));
    const std::string place = "role " + role.name() + ", a step: ";
    facts.emplace_back(place + "all_gather", grouped(wire.allGather));
    facts.emplace_back(place + "reduce_scatter", grouped(wire.reduceScatter));
    facts.emplace_back(place + "all_reduce", grouped(wire.allReduce));
    facts.emplace_back(place + "broadcast", grouped(wire.broadcast));
    facts.emplace_back(place + "all_to_all", grouped(wire.allToAll));
    facts.emplace_back(place + "send", grouped(wire.send));
    facts.emplace_back(place + "receive", grouped(wire.receive));
  }
  return facts;
}

/// Schedule and stages; nothing where there is one stage.
Facts pipelineFacts(const Plan &plan) {
  if (!hasStages(plan))
    return {};
  const plan::proto::Pipeline &pipeline = plan.pipeline();
  Facts facts = {{"schedule", pipeline.schedule()},
                 {"stages of a rank", grouped(pipeline.chunks())},
                 {"bubble", std::to_string(pipeline.bubble_fraction())}};
  for (int i = 0; i < pipeline.stages_size(); ++i) {
    const plan::proto::Stage &stage = pipeline.stages(i);
    const std::string place = "stage " + std::to_string(i) + ": ";
    facts.emplace_back(place + "first op", stage.first_op());
    facts.emplace_back(place + "last op", stage.last_op());
    facts.emplace_back(place + "time", secondsText(secondsOf(stage)));
    facts.emplace_back(place + "bytes sent", grouped(bytesSent(stage)));
    facts.emplace_back(place + "micro-batches in flight", grouped(stage.microbatches_in_flight()));
  }
  return facts;
}

/// How often each kind is launched, on which queue.
Facts collectiveFacts(const Plan &plan) {
  Facts facts;
  for (const Role &role : plan.roles())
    for (const plan::proto::Program &program : role.programs()) {
      std::map<std::string, uint64_t> launches;
      for (const plan::proto::Call &call : program.calls())
        for (const plan::proto::Command &command : role.routines(int(call.routine())).commands())
          if (command.has_collective())
            ++launches[plan::proto::CollectiveCommand::Kind_Name(command.collective().kind()) + " on queue " +
                       role.queues(int(command.queue())).name()];
      for (const auto &[kind, count] : launches)
        facts.emplace_back("role " + role.name() + ", program " + program.name() + ": " + kind, grouped(count));
    }
  return facts;
}

/// Of neither a kernel nor a collective.
const char *otherKind(const plan::proto::Command &command) {
  switch (command.kind_case()) {
  case plan::proto::Command::kFill:
    return "fill";
  case plan::proto::Command::kCopy:
    return "copy";
  case plan::proto::Command::kSend:
    return "send";
  case plan::proto::Command::kReceive:
    return "receive";
  default:
    return "feed";
  }
}

Facts commandFacts(const Plan &plan) {
  Facts facts;
  for (const Role &role : plan.roles()) {
    for (const plan::proto::Routine &routine : role.routines()) {
      std::map<std::string, uint64_t> counts; // of commands, by what they do
      for (const plan::proto::Command &command : routine.commands())
        if (command.has_kernel())
          ++counts[command.kernel().kernel()];
        else if (!command.has_collective())
          ++counts[otherKind(command)];
      for (const auto &[kind, count] : counts)
        facts.emplace_back("role " + role.name() + ", routine " + routine.name() + ": " + kind, grouped(count));
    }
    for (const plan::proto::Program &program : role.programs()) {
      const std::string place = "role " + role.name() + ", program " + program.name() + ": calls";
      facts.emplace_back(place, grouped(uint64_t(program.calls_size())));
      if (program.has_tail())
        facts.emplace_back(place + " before the tail", grouped(program.tail().first_call()));
    }
  }
  return facts;
}

std::string updatesOf(const Plan &plan) { return plan.stale() ? "stale" : "of their own step"; }

} // namespace

std::vector<Change> compare(const Plan &before, const Plan &after) {
  requireComparable(before, after);
  std::vector<Change> changes;
  compareFacts("numerics", {{"class", before.numerics()}, {"updates", updatesOf(before)}},
               {{"class", after.numerics()}, {"updates", updatesOf(after)}}, changes);
  compareFacts("world", worldFacts(before), worldFacts(after), changes);
  compareFacts("configuration", configFacts(before), configFacts(after), changes);
  compareFacts("pipeline", pipelineFacts(before), pipelineFacts(after), changes);
  compareFacts("ownership", ownershipFacts(before), ownershipFacts(after), changes);
  compareFacts("memory", memoryFacts(before), memoryFacts(after), changes);
  compareFacts("wire bytes", wireFacts(before), wireFacts(after), changes);
  compareFacts("collectives", collectiveFacts(before), collectiveFacts(after), changes);
  compareFacts("commands", commandFacts(before), commandFacts(after), changes);
  return changes;
}

} // namespace ds::report
