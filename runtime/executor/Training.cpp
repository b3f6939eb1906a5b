//===- Training.cpp - steps, evaluations, metrics, export -----------------===//
#include "runtime/executor/Training.h"

#include "kernels/KernelRegistry.h"
#include "runtime/core/DType.h"
#include "runtime/core/Error.h"
#include "runtime/core/Status.h"
#include "runtime/data/Dataset.h"
#include "runtime/data/InputSpec.h"
#include "runtime/device/Device.h"
#include "runtime/device/cpu/CpuDevice.h"
#include "runtime/device/null/NullDevice.h"
#include "runtime/executor/Executor.h"
#include "runtime/executor/ExportVariables.h"
#include "runtime/executor/MetricsFile.h"
#include "runtime/executor/StepReport.h"
#include "runtime/executor/VariableSources.h"
#include "runtime/plan/AtomicFile.h"
#include "runtime/plan/PlanReader.h"
#include "runtime/plan/plan.pb.h"
#include "runtime/trace/ProcessMemory.h"
#include "runtime/trace/Trace.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace ds::runtime {
namespace {

std::unique_ptr<Device> makeDevice(const plan::proto::Plan &plan, const std::string &wanted) {
  const std::string &device = wanted.empty() ? plan.machine().device() : wanted;
  if (device == "null")
    return std::make_unique<NullDevice>();
  if (device != plan.machine().device())
    throw Error("the plan was compiled for device " + plan.machine().device() + ", so it does not run on " + device +
                "; compile it for a machine with that device");
  if (device != "cpu")
    throw Error("device " + device + " is not available in this build yet; compile for a machine with device cpu");
  return std::make_unique<CpuDevice>();
}

std::vector<InputSpec> inputSpecs(const plan::proto::Plan &plan) {
  std::vector<InputSpec> specs;
  for (const plan::proto::Input &input : plan.inputs()) {
    InputSpec &spec = specs.emplace_back();
    spec.name = input.name();
    spec.dtype = DType(input.dtype());
    spec.sampleShape.assign(input.shape().begin() + 1, input.shape().end());
    spec.tokens = input.tokens() == "same"   ? InputSpec::Tokens::Same
                  : input.tokens() == "next" ? InputSpec::Tokens::Next
                                             : InputSpec::Tokens::None;
    spec.limit = input.limit();
    if (input.has_ignored())
      spec.ignored = input.ignored();
  }
  return specs;
}

/// Samples that one run of the evaluation program takes, over all data-parallel ranks.
uint64_t evaluationBatch(const plan::proto::Plan &plan, const Executor &executor, uint32_t program) {
  uint64_t microbatches = 0;
  for (const plan::proto::Call &call : executor.role().programs(int(program)).calls())
    microbatches = std::max<uint64_t>(microbatches, call.microbatch() + 1);
  return microbatches * executor.place().dataRanks * plan.training().micro_batch_size();
}

void orThrow(const Status &status) {
  if (!status.ok())
    throw Error(status.message());
}

} // namespace

Training::Training(const TrainingOptions &options, const kernels::KernelRegistry &kernels)
    : options_(options), plan_(std::make_unique<plan::proto::Plan>(plan::readPlan(options.planPath))) {
  checkRanks();
  device_ = makeDevice(*plan_, options.device);
  const int threads = options.threads > 0 ? options.threads : int(plan_->machine().threads());
  if (!options.trace.empty()) {
    plan::requireWritableFolder(options.trace);
    trace_ = std::make_unique<Trace>();
  }
  executor_ = std::make_unique<Executor>(*plan_, *device_, kernels,
                                         ExecutorOptions{.rank = 0,
                                                         .threads = threads,
                                                         .checkMemory = options.checkMemory,
                                                         .checkNumerics = options.checkNumerics,
                                                         .trace = trace_.get()});
  stepProgram_ = executor_->program("step");
  evaluateProgram_ = executor_->program("evaluate");
  openData();
  if (!options.exportPath.empty())
    checkExport(*plan_, *executor_, options.exportPath);
  if (device_->executes()) {
    const VariableSources sources(*plan_, {.planFolder = std::filesystem::path(options.planPath).parent_path().string(),
                                           .weightsPath = options.weights,
                                           .seed = options.seed});
    executor_->initialize(sources);
    unusedWeights_ = sources.unusedNames();
  }
  metrics_ = std::make_unique<MetricsFile>(options.metrics);
}

void Training::checkRanks() const {
  const uint64_t ranks = worldSize(*plan_);
  if (options_.ranks && *options_.ranks != ranks)
    throw Error("-n " + std::to_string(*options_.ranks) + " does not fit plan " + options_.planPath +
                ", which is for " + std::to_string(ranks) + (ranks == 1 ? " rank" : " ranks") +
                "; leave -n out or compile with --ranks " + std::to_string(*options_.ranks));
  if (ranks != 1)
    throw Error("plan " + options_.planPath + " is for " + std::to_string(ranks) +
                " ranks, and running more than one is not available yet; compile it with --ranks 1");
}

void Training::openData() {
  const Dataset::Order order{.shuffle = options_.shuffle && !options_.evaluateOnly, .seed = options_.seed};
  const bool evaluates = options_.evaluateOnly || !options_.evaluationData.empty();
  if (!options_.evaluateOnly && !stepProgram_)
    throw Error("plan " + options_.planPath + " has no program step, so it cannot train; try --eval");
  if (evaluates && !evaluateProgram_)
    throw Error("plan " + options_.planPath + " has no program evaluate; compile it again");
  if (!options_.evaluateOnly)
    data_ = std::make_unique<Dataset>(inputSpecs(*plan_), options_.data, order);
  if (evaluates)
    evaluationData_ = std::make_unique<Dataset>(
        inputSpecs(*plan_), options_.evaluationData.empty() ? options_.data : options_.evaluationData,
        Dataset::Order{});
  if (evaluates && evaluationData_->samples() < evaluationBatch(*plan_, *executor_, *evaluateProgram_))
    throw Error("the evaluation data has " + std::to_string(evaluationData_->samples()) + " samples, fewer than the " +
                std::to_string(evaluationBatch(*plan_, *executor_, *evaluateProgram_)) + " of one evaluation batch");
  if (data_)
    steps_ = options_.steps.value_or((data_->samples() + samplesPerStep() - 1) / samplesPerStep());
}

void Training::run(TrainingObserver &observer, const std::atomic<bool> &stop) {
  try {
    runAll(observer, stop);
  } catch (const Error &) {
    try {
      writeTrace();           // what a run did before it failed is worth most
    } catch (const Error &) { // and no reason to hide why it failed
    }
    throw;
  }
  writeTrace();
}

void Training::writeTrace() const {
  if (trace_)
    plan::writeFileAtomically(options_.trace, chromeTrace(trace_->events()));
}

void Training::runAll(TrainingObserver &observer, const std::atomic<bool> &stop) {
  if (options_.evaluateOnly)
    evaluate(0, observer);
  for (uint64_t done = 0; done < steps_;) {
    step(++done, observer);
    if (stop && done < steps_) {
      orThrow(metrics_->write(summary()));
      throw Error("stopped by a signal after step " + std::to_string(done) + " of " + std::to_string(steps_) +
                  "; nothing was saved or exported, since --save is not available yet");
    }
    if (evaluationIsDue(done))
      evaluate(done, observer);
  }
  orThrow(metrics_->write(summary()));
  if (!options_.exportPath.empty())
    exportVariables(*plan_, *executor_, options_.exportPath);
}

bool Training::evaluationIsDue(uint64_t stepsDone) const {
  if (!evaluationData_)
    return false;
  return stepsDone == steps_ || (options_.evaluationInterval > 0 && stepsDone % options_.evaluationInterval == 0);
}

void Training::step(uint64_t number, TrainingObserver &observer) {
  const auto begin = std::chrono::steady_clock::now();
  const uint64_t before = number - 1;
  orThrow(executor_->execute({.program = *stepProgram_,
                              .seed = options_.seed,
                              .step = before,
                              .data = data_.get(),
                              .firstSample = before * samplesPerStep()}));
  StepReport report{.step = number,
                    .loss = executor_->metric(*stepProgram_, "loss"),
                    .gradientNorm = executor_->metric(*stepProgram_, "grad_norm"),
                    .learningRate = executor_->metric(*stepProgram_, "lr")};
  report.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  report.samplesPerSecond = report.seconds > 0 ? double(samplesPerStep()) / report.seconds : 0;
  orThrow(metrics_->write(report));
  observer.stepDone(report);
}

void Training::evaluate(uint64_t stepsDone, TrainingObserver &observer) {
  const uint64_t batch = evaluationBatch(*plan_, *executor_, *evaluateProgram_);
  const uint64_t runs = evaluationData_->samples() / batch; // a rest smaller than a batch is left out
  EvaluationReport report{.step = stepsDone, .loss = std::nullopt};
  double sum = 0;
  for (uint64_t i = 0; i < runs; ++i) {
    orThrow(executor_->execute({.program = *evaluateProgram_,
                                .seed = options_.seed,
                                .step = stepsDone,
                                .data = evaluationData_.get(),
                                .firstSample = i * batch}));
    report.loss = executor_->metric(*evaluateProgram_, "loss");
    sum += report.loss ? report.loss->asDouble() : 0;
  }
  if (report.loss && runs > 1)
    report.loss = Scalar{.dtype = DType::F64, .number = sum / double(runs)};
  orThrow(metrics_->write(report));
  observer.evaluated(report);
}

SummaryReport Training::summary() const noexcept {
  SummaryReport report{.rank = executor_->place().rank,
                       .deviceBytes = device_->allocatedBytes("device"),
                       .hostBytes = device_->allocatedBytes("host"),
                       .nvmeBytes = device_->allocatedBytes("nvme"),
                       .anonymousResidentBytes = anonymousResidentBytes()};
  for (int i = 0; i < executor_->role().arenas_size(); ++i)
    if (executor_->role().arenas(i).space() == "device")
      report.deviceTouchedBytes += executor_->storage().arenas()[size_t(i)]->touchedBytes();
  return report;
}

} // namespace ds::runtime
