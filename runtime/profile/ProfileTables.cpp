//===- ProfileTables.cpp - where the time of a step goes, as tables -------===//
#include "runtime/profile/ProfileTables.h"

#include "core/DType.h"
#include "runtime/plan/run/Flops.h"
#include "runtime/plan/world/Mesh.h"

#include <algorithm>
#include <array>
#include <compare>
#include <cstdio>
#include <functional>
#include <map>
#include <numeric>
#include <optional>
#include <string_view>
#include <utility>

namespace ds::runtime {
namespace {

using Routine = plan::proto::Routine;
using Collective = plan::proto::CollectiveCommand;

/// DeepSpeed's names of what a phase is a part of.
std::string_view nameOf(Routine::Phase phase) {
  switch (phase) {
  case Routine::FEED:
    return "data";
  case Routine::RECEIVE:
  case Routine::GATHER:
  case Routine::FORWARD:
    return "fwd";
  case Routine::BACKWARD:
  case Routine::WEIGHT:
    return "bwd";
  case Routine::UPDATE:
    return "step";
  default:
    return "other";
  }
}

bool isOnComputeQueue(const ProfiledCommand &command) {
  const plan::proto::Queue::Kind kind = command.role->queues(int(command.command->queue())).kind();
  return kind == plan::proto::Queue::COMPUTE || kind == plan::proto::Queue::HOST;
}

template <typename... Values> std::string line(const char *format, Values... values) {
  std::array<char, 160> text{};
  std::snprintf(text.data(), text.size(), format, values...);
  return text.data();
}

uint64_t bytesOf(const plan::proto::Operand &operand) {
  uint64_t bytes = uint64_t(byteSize(DType(operand.dtype())));
  for (const int64_t dim : operand.shape())
    bytes *= uint64_t(dim);
  return bytes;
}

/// Of the whole tensor, as nccl-tests counts.
uint64_t bytesOf(const Collective &collective) {
  uint64_t bytes = 0;
  for (const plan::proto::CollectivePart &part : collective.parts())
    bytes += std::max(bytesOf(part.source()), bytesOf(part.target()));
  return bytes;
}

std::string lower(std::string_view name) {
  std::string text(name);
  std::ranges::transform(text, text.begin(), [](char letter) { return letter == '_' ? letter : char(letter | 0x20); });
  return text;
}

/// What is one row of the table.
struct Communication {
  std::string name;
  uint64_t ranks = 0, bytes = 0;
  auto operator<=>(const Communication &) const = default;
};

double busFactor(const Communication &kind) {
  const double others = double(kind.ranks - 1) / double(kind.ranks);
  if (kind.name == "send" || kind.name == "recv" || kind.name == "broadcast")
    return 1;
  return kind.name == "all_reduce" ? 2 * others : others;
}

template <typename Operands> uint64_t sumOfBytes(const Operands &operands) {
  uint64_t bytes = 0;
  for (const plan::proto::Operand &operand : operands)
    bytes += bytesOf(operand);
  return bytes;
}

/// Under DeepSpeed's names; nothing where the command does not communicate.
std::optional<Communication> communicationOf(const plan::proto::Plan &plan, const plan::proto::Command &command) {
  if (command.has_send())
    return Communication{"send", 2, sumOfBytes(command.send().sources())};
  if (command.has_receive())
    return Communication{"recv", 2, sumOfBytes(command.receive().targets())};
  if (!command.has_collective())
    return std::nullopt;
  const Collective &collective = command.collective();
  return Communication{lower(Collective::Kind_Name(collective.kind())),
                       plan::Group(plan, collective.communicator()).size(), bytesOf(collective)};
}

uint64_t parametersOf(const plan::proto::Plan &plan) {
  uint64_t sum = 0;
  for (const plan::proto::Variable &variable : plan.variables())
    if (variable.kind() == plan::proto::Variable::PARAMETER)
      sum += std::accumulate(variable.shape().begin(), variable.shape().end(), uint64_t(1), std::multiplies<>());
  return sum;
}

} // namespace

std::string phaseTable(std::span<const CommandTime> times, const StepTimes &steps) {
  struct Row {
    double seconds = 0, beside = 0;
  };
  std::map<std::string_view, Row> rows;
  const double total = steps.seconds + steps.saveSeconds;
  double left = total;
  for (const CommandTime &time : times) {
    const bool computes = isOnComputeQueue(time.command);
    Row &row = rows[nameOf(time.command.routine->phase())];
    (computes ? row.seconds : row.beside) += time.seconds;
    if (computes && nameOf(time.command.routine->phase()) != "other")
      left -= time.seconds;
  }
  rows["checkpoint"].seconds = steps.saveSeconds;
  rows["other"].seconds = left - steps.saveSeconds;
  const double each = 1e3 / double(std::max<uint64_t>(1, steps.steps));
  std::string text = line("%-10s %12s %8s %14s\n", "part", "ms", "share", "beside it, ms");
  for (const char *part : {"fwd", "bwd", "step", "data", "checkpoint", "other"})
    text += line("%-10s %12.3f %7.1f%% %14.3f\n", part, each * rows[part].seconds,
                 total > 0 ? 100 * rows[part].seconds / total : 0, each * rows[part].beside);
  return text + line("%-10s %12.3f %7.1f%%\n", "total", each * total, 100.0);
}

std::string communicationTable(const plan::proto::Plan &plan, std::span<const CommandTime> times) {
  struct Row {
    uint64_t runs = 0;
    double seconds = 0;
  };
  std::map<Communication, Row> rows;
  for (const CommandTime &time : times)
    if (const auto kind = communicationOf(plan, *time.command.command); kind && time.runs > 0) {
      rows[*kind].runs += time.runs;
      rows[*kind].seconds += time.seconds;
    }
  if (rows.empty())
    return "";
  std::string text = line("%-15s %6s %14s %8s %12s %12s %12s %12s\n", "kind", "ranks", "bytes", "count", "total, ms",
                          "mean, ms", "algbw, GB/s", "busbw, GB/s");
  for (const auto &[kind, row] : rows) {
    const double bandwidth = row.seconds > 0 ? double(kind.bytes) * double(row.runs) / row.seconds * 1e-9 : 0;
    text += line("%-15s %6llu %14llu %8llu %12.3f %12.4f %12.3f %12.3f\n", kind.name.c_str(),
                 static_cast<unsigned long long>(kind.ranks), static_cast<unsigned long long>(kind.bytes),
                 static_cast<unsigned long long>(row.runs), 1e3 * row.seconds, 1e3 * row.seconds / double(row.runs),
                 bandwidth, bandwidth * busFactor(kind));
  }
  return text;
}

/// MACs and FLOPs of products, by phase and in all.
static std::string headOfFlops(const plan::proto::Plan &plan, std::span<const CommandTime> times, double stepSeconds) {
  struct Row {
    double flops = 0, seconds = 0;
  };
  std::map<std::string_view, Row> rows;
  Row whole{.seconds = stepSeconds};
  for (const CommandTime &time : times) {
    const plan::proto::Command &command = *time.command.command;
    const double flops = command.has_kernel() ? double(time.runs) * plan::flopsOf(command.kernel()) : 0;
    Row &row = rows[nameOf(time.command.routine->phase())];
    row.flops += flops;
    row.seconds += isOnComputeQueue(time.command) ? time.seconds : 0;
    whole.flops += flops;
  }
  const auto show = [](const char *name, const Row &row) {
    return line("%-10s %16.0f %16.0f %12.3f %12.3f\n", name, row.flops / 2, row.flops, 1e3 * row.seconds,
                row.seconds > 0 ? row.flops / row.seconds * 1e-9 : 0);
  };
  std::string text = line("parameters of the model %llu\n", static_cast<unsigned long long>(parametersOf(plan)));
  text += line("%-10s %16s %16s %12s %12s\n", "part", "MACs", "FLOPs", "ms", "GFLOP/s");
  for (const char *part : {"fwd", "bwd", "step"})
    text += show(part, rows[part]);
  return text + show("whole step", whole);
}

std::string flopsTable(const plan::proto::Plan &plan, std::span<const CommandTime> times, double stepSeconds) {
  struct Row {
    uint64_t runs = 0;
    double flops = 0, seconds = 0;
  };
  std::map<std::pair<std::string_view, std::string>, Row> rows; // by phase and kernel
  double flops = 0;
  for (const CommandTime &time : times)
    if (time.runs > 0 && time.command.command->has_kernel()) {
      const plan::proto::KernelCommand &kernel = time.command.command->kernel();
      Row &row = rows[{nameOf(time.command.routine->phase()), kernel.kernel()}];
      row.runs += time.runs;
      row.flops += double(time.runs) * plan::flopsOf(kernel);
      row.seconds += time.seconds;
      flops += double(time.runs) * plan::flopsOf(kernel);
    }
  std::string text = headOfFlops(plan, times, stepSeconds);
  text += line("%-6s %-22s %8s %16s %12s %12s\n", "phase", "kernel", "count", "FLOPs", "ms", "GFLOP/s");
  for (const auto &[key, row] : rows)
    text += line("%-6s %-22s %8llu %16.0f %12.3f %12.3f\n", key.first.data(), key.second.c_str(),
                 static_cast<unsigned long long>(row.runs), row.flops, 1e3 * row.seconds,
                 row.seconds > 0 ? row.flops / row.seconds * 1e-9 : 0);
  return text + line("rank %u computes %.0f FLOPs of products in a step; the model has %llu on all stages of a "
                     "data-parallel rank\n",
                     times.empty() ? 0 : times[0].command.rank, flops,
                     static_cast<unsigned long long>(plan::matmulFlopsPerStep(plan)));
}

} // namespace ds::runtime
