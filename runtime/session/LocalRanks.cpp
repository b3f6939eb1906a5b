//===- LocalRanks.cpp - the ranks of a plan that run in this process ------===//
#include "runtime/session/LocalRanks.h"

#include "core/Status.h"
#include "kernels/KernelRegistry.h"
#include "runtime/comm/Transport.h"
#include "runtime/device/Device.h"
#include "runtime/executor/Executor.h"
#include "runtime/executor/Run.h"
#include "runtime/executor/Storage.h"
#include "runtime/executor/VariableSources.h"
#include "runtime/plan/format/Lengths.h"
#include "runtime/plan/plan.pb.h"
#include "runtime/plan/world/Mesh.h"
#include "runtime/session/StepReport.h"
#include "runtime/trace/ProcessMemory.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>

namespace ds::runtime {

LocalRanks::LocalRanks(const plan::proto::Plan &plan, Transport &transport, const MakeDevice &makeDevice,
                       const kernels::KernelRegistry &kernels, const ExecutorOptions &options,
                       const std::function<void(const std::string &)> &onFailure)
    : transport_(transport), ranks_(transport.localRanks().size()) {
  uint64_t promised = options.promisedBytes;
  for (size_t i = 0; i < ranks_.size(); ++i) {
    LocalRank &local = ranks_[i];
    ExecutorOptions mine = options;
    mine.rank = transport.localRanks()[i];
    local.device = makeDevice(mine.rank);
    mine.transport = &transport;
    mine.promisedBytes = promised;
    mine.profile = plan::roleOfRank(plan, mine.rank).ranks(0) == mine.rank ? options.profile : nullptr;
    local.executor = std::make_unique<Executor>(plan, *local.device, kernels, mine);
    for (const char *space : {"device", "host"})
      promised += local.device->isMainMemory(space) ? local.device->allocatedBytes(space) : 0;
    local.device->onFailure([&transport](const Status &status) {
      transport.stop(status);
      return transport.failure(); // another rank's, where that came first
    });
  }
  transport.onStop([this, onFailure](const Status &status) {
    for (const LocalRank &local : ranks_)
      local.device->fail(status);
    if (onFailure)
      onFailure(status.message());
  });
}

LocalRanks::~LocalRanks() { transport_.onStop({}); }

void LocalRanks::initialize(const VariableSources &sources) {
  for (const LocalRank &local : ranks_)
    local.executor->initialize(sources);
}

Status LocalRanks::execute(std::string_view program, const Run &run) noexcept {
  const bool isStep = plan::isProgram(program, "step");
  for (LocalRank &local : ranks_) {
    if (isStep)
      local.stepTraffic = local.executor->traffic();
    Run mine = run;
    mine.program = *local.executor->program(program);
    local.executor->submit(mine);
  }
  Status status = finish();
  const auto wantsTail = [](const LocalRank &local) { return local.executor->wantsTail(); };
  if (status.ok() && std::ranges::any_of(ranks_, wantsTail)) { // the scalar is alike on all
    for (const LocalRank &local : ranks_)
      local.executor->submitTail();
    status = finish();
    stepsRedone_ += isStep;
  }
  for (LocalRank &local : ranks_) {
    if (status.ok())
      local.executor->exchangeNexts();
    if (isStep)
      local.stepTraffic = local.executor->traffic() - local.stepTraffic;
  }
  return status;
}

Status LocalRanks::finish() noexcept {
  Status status;
  for (const LocalRank &local : ranks_)
    if (const Status own = local.executor->finish(); !own.ok() && status.ok())
      status = own;
  return status;
}

Executor *LocalRanks::find(uint32_t rank) const noexcept {
  for (const LocalRank &local : ranks_)
    if (local.executor->position().rank == rank)
      return local.executor.get();
  return nullptr;
}

static FallbackReport fallbacksOf(const Device &device) {
  FallbackReport report;
  std::string text;
  for (const auto &[kernel, count] : device.fallbacks().value_or(std::map<std::string, int64_t>())) {
    report.count += uint64_t(count);
    text += (text.empty() ? "" : ", ") + std::to_string(count) + " of " + kernel;
  }
  report.isCounted = device.fallbacks().has_value();
  text.copy(report.kernels.data(), report.kernels.size() - 1);
  return report;
}

SummaryReport LocalRanks::summary(uint32_t rank) const noexcept {
  for (const LocalRank &local : ranks_) {
    const Executor &executor = *local.executor;
    if (executor.position().rank != rank)
      continue;
    SummaryReport report{.rank = rank,
                         .deviceBytes = local.device->allocatedBytes("device"),
                         .hostBytes = local.device->allocatedBytes("host"),
                         .nvmeBytes = local.device->allocatedBytes("nvme"),
                         .stepsRedone = stepsRedone_,
                         .trafficPerStep = local.stepTraffic,
                         .anonymousResidentBytes = anonymousResidentBytes(),
                         .fallbacks = fallbacksOf(*local.device)};
    for (int i = 0; i < executor.role().arenas_size(); ++i)
      if (executor.role().arenas(i).space() == "device")
        report.deviceTouchedBytes += executor.storage().arenas()[size_t(i)]->touchedBytes();
    return report;
  }
  return {};
}

} // namespace ds::runtime
