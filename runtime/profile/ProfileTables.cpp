//===- ProfileTables.cpp - where the time of a step goes, as tables -------===//
#include "runtime/profile/ProfileTables.h"

#include "core/DType.h"
#include "kernels/KernelTable.h"
#include "runtime/plan/Flops.h"
#include "runtime/plan/Groups.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <map>
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

double busFactor(Collective::Kind kind, double ranks) {
  const double others = (ranks - 1) / ranks;
  return kind == Collective::ALL_REDUCE ? 2 * others : kind == Collective::BROADCAST ? 1 : others;
}

std::string lower(std::string_view name) {
  std::string text(name);
  std::ranges::transform(text, text.begin(), [](char letter) { return letter == '_' ? letter : char(letter | 0x20); });
  return text;
}

/// Of one run of a kernel; 0 of what is no product.
double flopsOf(const plan::proto::KernelCommand &kernel) {
  const kernels::KernelRow *row = kernels::findKernel(kernel.kernel());
  if (!row)
    return 0;
  std::vector<kernels::TensorType> reads, writes;
  for (const plan::proto::Operand &operand : kernel.operands())
    if (operand.access() != plan::proto::Operand::SCRATCH)
      (operand.access() == plan::proto::Operand::WRITE ? writes : reads)
          .push_back({DType(operand.dtype()), Shape(operand.shape().begin(), operand.shape().end())});
  return kernels::flopsOf(row->name, kernels::CallTypes(*row, reads, writes));
}

} // namespace

std::string phaseTable(std::span<const CommandTime> times, uint64_t steps) {
  struct Row {
    double computing = 0, communicating = 0;
  };
  std::map<std::string_view, Row> rows{{"fwd", {}}, {"bwd", {}}, {"step", {}}, {"other", {}}};
  for (const CommandTime &time : times) {
    const bool communicates = time.command.command->has_collective() || time.command.command->has_send() ||
                              time.command.command->has_receive();
    Row &row = rows[nameOf(time.command.routine->phase())];
    (communicates ? row.communicating : row.computing) += 1e3 * time.seconds / double(std::max<uint64_t>(1, steps));
  }
  std::string text = line("%-6s %12s %18s\n", "phase", "compute, ms", "communication, ms");
  for (const std::string_view phase : {"fwd", "bwd", "step", "other"})
    text += line("%-6s %12.3f %18.3f\n", phase.data(), rows[phase].computing, rows[phase].communicating);
  return text;
}

std::string collectiveTable(const plan::proto::Plan &plan, uint32_t rank, std::span<const CommandTime> times) {
  struct Row {
    uint64_t runs = 0;
    double seconds = 0;
  };
  std::map<std::array<uint64_t, 3>, Row> rows; // by kind, ranks, bytes
  for (const CommandTime &time : times)
    if (time.runs > 0 && time.command.command->has_collective()) {
      const Collective &collective = time.command.command->collective();
      Row &row =
          rows[{uint64_t(collective.kind()), plan::groupSize(plan, collective.communicator()), bytesOf(collective)}];
      row.runs += time.runs;
      row.seconds += time.seconds;
    }
  std::string text = line("%-15s %6s %14s %8s %12s %12s %12s %12s\n", ("rank " + std::to_string(rank)).c_str(), "ranks",
                          "bytes", "count", "total, ms", "mean, ms", "algbw, GB/s", "busbw, GB/s");
  for (const auto &[key, row] : rows) {
    const auto [kind, ranks, bytes] = key;
    const double bandwidth = row.seconds > 0 ? double(bytes) * double(row.runs) / row.seconds * 1e-9 : 0;
    text += line("%-15s %6llu %14llu %8llu %12.3f %12.4f %12.3f %12.3f\n",
                 lower(Collective::Kind_Name(Collective::Kind(kind))).c_str(), static_cast<unsigned long long>(ranks),
                 static_cast<unsigned long long>(bytes), static_cast<unsigned long long>(row.runs), 1e3 * row.seconds,
                 1e3 * row.seconds / double(row.runs), bandwidth,
                 bandwidth * busFactor(Collective::Kind(kind), double(ranks)));
  }
  return text;
}

std::string flopsTable(const plan::proto::Plan &plan, uint32_t rank, std::span<const CommandTime> times) {
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
      row.flops += double(time.runs) * flopsOf(kernel);
      row.seconds += time.seconds;
      flops += double(time.runs) * flopsOf(kernel);
    }
  std::string text = line("%-6s %-22s %8s %16s %12s %12s\n", "phase", "kernel", "count", "FLOPs", "ms", "GFLOP/s");
  for (const auto &[key, row] : rows)
    text += line("%-6s %-22s %8llu %16.0f %12.3f %12.3f\n", key.first.data(), key.second.c_str(),
                 static_cast<unsigned long long>(row.runs), row.flops, 1e3 * row.seconds,
                 row.seconds > 0 ? row.flops / row.seconds * 1e-9 : 0);
  return text + line("rank %u computes %.0f FLOPs of products in a step; the model has %llu on all stages of a "
                     "data-parallel rank\n",
                     rank, flops, static_cast<unsigned long long>(plan::matmulFlopsPerStep(plan)));
}

} // namespace ds::runtime
